package stepped_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/homeostat/homeostat/internal/stepped"
	"github.com/stretchr/testify/require"
)

// TestRegressions replays histories that are worth keeping. Each of their steps must
// still be possible, and the trace must show what the history is about: one that has
// become harmless is of no use.
func TestRegressions(t *testing.T) {
	for _, c := range []struct {
		name, history string
		shows         []string
	}{
		{"the history expires between two pages", `
			client list+order+resume+ids
			create k0
			create k1
			create k2
			create k3
			go c0
			go c0
			delete k3 any
			compact
			go c0
			go c0
			sleep 1
			go c0
			go c0
		`, []string{"page of 3 at p4", "history begins at 6: reflector: cursor expired", "watch? after p5"}},
		{"deleted and created again during a cut", `
			client stream+order+progress+resume+ids+slow
			create k0
			go c0
			go c0
			handle c0
			cut c0
			delete k0 now
			create k0
			sleep 1
			go c0
			go c0
			go c0
			go c0
			handle c0
		`, []string{"watch? after p1", "cache [k0=#2], told []"}},
		{"deleted and created again while history was lost", `
			client list+order+progress+resume+ids+slow
			create k0
			go c0
			go c0
			handle c0
			fail c0 boom
			delete k0 now
			create k0
			compact
			sleep 1
			go c0
			go c0
			sleep 1
			go c0
			go c0
			handle c0
		`, []string{"cursor expired", "cache [k0=#2], told []", "cache [k0=#2], told [k0=#2]"}},
		{"set back to an older state of the same epoch", `
			client list+order+progress+resume+ids
			save
			create k0
			create k1
			go c0
			go c0
			rewind 0
			sleep 1
			go c0
			go c0
			sleep 1
			go c0
			go c0
			sleep 12
			go c0
			go c0
			create k2
		`, []string{"revision 2, now at 0: reflector: cursor ahead of the source", `the source is at "p0", which lies before "p2": cache [k0=#1 k1=#2]`, "cache [], told []; watch? after p0"}},
		{"a batch of the old epoch comes after the restore", `
			client stream+order+progress+resume+ids
			go c0
			go c0
			save
			create k0
			restore 1
			create k1
			go c0
			sleep 1
			go c0
			go c0
			sleep 1
			go c0
			go c0
		`, []string{"cache [k0=#1]", "a cursor of another epoch: reflector: cursor expired", "cache [k1=#2]"}},
		{"a lost batch that the next one betrays", `
			client stream+order+prev+progress+resume+ids
			go c0
			go c0
			create k0
			drop c0
			create k1
			go c0
			sleep 1
			go c0
			go c0
		`, []string{`a batch that follows "p1" came after "p0", what lies between was lost`, "cache [k0=#1 k1=#2]"}},
		{"batches that change places", `
			client list+order+prev+progress+resume+ids
			go c0
			go c0
			go c0
			go c0
			create k0
			hold c0
			delete k0 any
			go c0
			sleep 1
			go c0
			go c0
		`, []string{"what lies between was lost"}},
		{"pages of several states are held back", `
			client list+order+progress+resume+torn+ids
			create k1
			create k2
			create k3
			create k4
			go c0
			go c0
			delete k1 any
			update k4 any
			go c0
			go c0
			go c0
			go c0
			go c0
			go c0
		`, []string{"told []; watch? after p4", "told []; batch delete k01", "cache [k2=#2 k3=#3 k4=#5]"}},
		{"a replica that lags", `
			client list+order+progress+resume+ids
			create k0
			go c0
			go c0
			delete k0 any
			fail c0 expired
			sleep 1
			stale c0 2
			go c0
			sleep 1
			go c0
			go c0
		`, []string{`the source is at "p0", which lies before "p1": cache [k0=#1]`, "cache []"}},
		{"a streamed state that breaks in its middle", `
			client stream+order+progress+resume+ids
			create k0
			create k1
			create k2
			create k3
			go c0
			go c0
			fail c0 boom
			delete k3 any
			sleep 1
			go c0
			go c0
		`, []string{"boom: cache []", "cache [k0=#1 k1=#2 k2=#3]"}},
		{"the answer of a list is lost", `
			client poll+lazy+slow
			create k0
			go c0
			go c0
			delete k0 any
			sleep 1
			go c0
			fail c0 boom
			sleep 1
			go c0
			go c0
		`, []string{"boom: cache [k0=#1]", "cache []"}},
		{"the last write is waited for through a rewind", `
			client list+order+progress+resume
			save
			create k0
			go c0
			go c0
			wait c0
			rewind 0
			wait c0
			sleep 12
			go c0
		`, []string{"cursor ahead"}},
		{"an audit of what was told without a position", `
			client list+order+resume+sparse+audit
			create k6
			create k5
			go c0
			go c0
			go c0
			go c0
			create k7
			sleep 1
			go c0
			create k3
			create k9
			go c0
			go c0
			go c0
			drop c0
			go c0
			go c0
		`, []string{"page of 3 at p3", "cache [k3=#4 k5=#2 k6=#1 k9=#5]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := stepped.Replay(t, stepped.Config{}, c.history)
			require.Nil(t, f, "%s", f)
			trace := stepped.TraceOf(t, stepped.Config{}, c.history)
			steps := strings.Count(c.history, "\n") - strings.Count(c.history, "client") - 1
			require.Contains(t, trace, fmt.Sprintf("%3d. ", steps), "a step was skipped:\n%s", trace)
			for _, text := range c.shows {
				require.Contains(t, trace, text)
			}
		})
	}
}

func TestATextThatIsNone(t *testing.T) {
	for text, want := range map[string]string{
		"client what":            `stepped: no feed is called "what"`,
		"client stream+tall":     `stepped: no client can be "tall"`,
		"dance c0":               `stepped: "dance c0": no step is called "dance"`,
		"update k0 now and then": `stepped: "update k0 now and then": what is "and"?`,
		"history x":              `stepped: strconv.Atoi: parsing "x": invalid syntax`,
	} {
		require.EqualError(t, stepped.Check(text), want)
	}
	require.NoError(t, stepped.Check("client list // a comment\n\n go c0 // another"))
}
