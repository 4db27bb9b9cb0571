package stepped_test

import (
	"fmt"
	"testing"

	"github.com/homeostat/homeostat/internal/stepped"
	"github.com/stretchr/testify/require"
)

// config is that of a seed.
func config(seed uint64) stepped.Config {
	return stepped.Config{Seed: seed, Steps: 100 + int(seed%41), Clients: 1 + int(seed%3)}
}

// TestG1_G2_G3_G8_G9_SteppedHistories: whatever happens between a store and its
// informers, in whatever order, caches and handlers show nothing but what was, in
// the order in which it was, and in the end what is.
func TestG1_G2_G3_G8_G9_SteppedHistories(t *testing.T) {
	n := histories
	if testing.Short() {
		n = 200
	}
	const rooms = 4
	var stats [rooms]stepped.Stats
	t.Run("in", func(t *testing.T) {
		for room := range rooms {
			t.Run(fmt.Sprint(room), func(t *testing.T) {
				t.Parallel()
				for seed := room + 1; seed <= n; seed += rooms {
					cfg := config(uint64(seed))
					cfg.Stats = &stats[room]
					stepped.Run(t, cfg)
				}
			})
		}
	})
	if t.Failed() {
		return
	}
	var all stepped.Stats
	for i := range stats {
		all.Add(&stats[i])
	}
	t.Log(&all)
	require.Equal(t, n, all.Histories)
	require.GreaterOrEqual(t, all.FewestSteps, 100)
	require.GreaterOrEqual(t, all.FewestFaults, 3)
	// The weather was as bad as it was meant to be.
	for op, many := range map[string]int{
		"compact": 1, "restore": 1, "rewind": 1, "cut": 1, "fail": 4, "drop": 1, "dup": 1, "hold": 1, "relist": 1, "restart": 1, "rejoin": 1, "wait": 1,
	} {
		require.GreaterOrEqual(t, all.Done[op], n*many/4, op)
	}
	for _, op := range []string{"stale", "short", "replay", "mute"} {
		require.GreaterOrEqual(t, all.Done[op], n/20, op)
	}
	for what, got := range map[string]uint64{"resets": all.Resets, "gaps": all.Gaps, "replays": all.Replays, "missed": all.Missed} {
		require.GreaterOrEqual(t, got, uint64(n)/10, what)
	}
	require.Greater(t, all.Synced, all.Looks/2)
}

// TestG8_WithoutAnAudit: what a source hides stays wrong where nobody looks for it, and
// the status says that nobody does. Where there is an audit, it is found.
func TestG8_WithoutAnAudit(t *testing.T) {
	var stats stepped.Stats
	n := min(histories, 1000)
	if testing.Short() {
		n = 200
	}
	for seed := range n {
		cfg := config(uint64(seed))
		cfg.Unrepaired, cfg.Stats = true, &stats
		stepped.Run(t, cfg)
	}
	t.Logf("%d of %d clients ended astray", stats.Astray, n*2)
	require.Greater(t, stats.Astray, n/50)
}

// TestDeterminism: a seed is a history. The same steps happen, and the same comes of
// them; and a replay of the steps is the history again.
func TestDeterminism(t *testing.T) {
	for seed := range uint64(60) {
		cfg := config(seed)
		text, trace := stepped.Trace(t, cfg)
		again, retrace := stepped.Trace(t, cfg)
		require.Equal(t, text, again, "seed %d", seed)
		require.Equal(t, trace, retrace, "seed %d", seed)
		require.Equal(t, trace, stepped.TraceOf(t, cfg, text), "seed %d", seed)
	}
}
