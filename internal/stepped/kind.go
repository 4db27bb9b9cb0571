package stepped

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// kind is what sort of source a client has: how it feeds, and which powers the
// gate leaves it. Its text is "stream+order+prev".
type kind struct {
	feed  string
	flags []string // in the order of kindFlags
}

// The feeds: a full state streamed by the watch; listed in pages; streamed without
// any positions; polled; hinted.
var feeds = []string{"stream", "list", "blind", "poll", "hint"}

var kindFlags = []string{
	"order",    // Powers.Compare
	"prev",     // batches name what they follow
	"progress", // Powers.Progress
	"resume",   // Powers.ResumeProven
	"sparse",   // every other batch of changes has no cursor
	"torn",     // each page is of the state at its time
	"ids",      // objects have IDs
	"bare",     // deletes name the key alone
	"lazy",     // a list that is the last one is ErrNotModified
	"filter",   // behind a Filter that hides one write in four
	"audit",    // audited every second
	"keys",     // Powers.KeysOnly
	"slow",     // the handler does one change at a step
	"inline",   // the handler is called inline
}

func (k kind) String() string { return strings.Join(append([]string{k.feed}, k.flags...), "+") }

func (k kind) has(flag string) bool { return slices.Contains(k.flags, flag) }

// positions: cursors reach the reflector.
func (k kind) positions() bool { return k.feed == "stream" || k.feed == "list" }

func parseKind(text string) (kind, error) {
	parts := strings.Split(text, "+")
	k := kind{feed: parts[0], flags: parts[1:]}
	if !slices.Contains(feeds, k.feed) {
		return kind{}, fmt.Errorf("no feed is called %q", k.feed)
	}
	for _, f := range k.flags {
		if !slices.Contains(kindFlags, f) {
			return kind{}, fmt.Errorf("no client can be %q", f)
		}
	}
	return k, nil
}

// drawKind draws one that makes sense.
func drawKind(r *rand.Rand) kind {
	k := kind{feed: []string{"stream", "stream", "stream", "list", "list", "list", "list", "blind", "poll", "hint"}[r.IntN(10)]}
	order := r.IntN(4) > 0
	odds := map[string]int{"prev": 2, "progress": 3, "ids": 4, "bare": 1, "order": 0, "filter": 1, "slow": 3, "inline": 1}
	if order {
		odds["order"] = 5
	}
	switch k.feed {
	case "stream":
		odds["resume"], odds["sparse"], odds["audit"], odds["keys"] = 4, 1, 1, 3
	case "list":
		odds["resume"], odds["sparse"], odds["audit"], odds["keys"] = 4, 1, 1, 3
		if order { // without, such a source shows states that never were, and says so
			odds["torn"] = 2
		}
	case "blind":
		odds["prev"] = 0
	case "poll":
		odds["prev"], odds["progress"], odds["lazy"] = 0, 0, 2
	case "hint":
		odds["prev"], odds["progress"], odds["lazy"] = 0, 0, 2
	}
	for _, f := range kindFlags {
		switch {
		// The pages that are held back come out of a map: whoever takes them one by
		// one would take them in another order each time.
		case f == "slow" && k.has("torn"):
		// Who adds an inline handler gives it its first objects.
		case f == "inline" && k.has("slow"):
		// An audit comes to nothing where pages show several states.
		case f == "audit" && k.has("torn"):
		// Who tells no cursor can't say what follows it.
		case f == "sparse" && k.has("prev"):
		case f == "keys" && !k.has("audit"):
		case r.IntN(5) < odds[f]:
			k.flags = append(k.flags, f)
		}
	}
	return k
}
