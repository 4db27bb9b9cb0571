package reconcile_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/reconcile"
	"github.com/homeostat/homeostat/retry"
)

func TestC21_LooksAreSpreadOverThePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1000
		s := store(t)
		for i := range n {
			with(t, s, fmt.Sprint(i))
		}
		var runs ran
		c := reconcile.New("c", informer.New(s, nil), runs.wrap(nil), &reconcile.Options{Every: 10 * time.Minute})
		launch(t, &reconcile.Group{}, c)
		begin := time.Now()
		time.Sleep(15 * time.Minute)
		c.TriggerAll("an outage is over") // all together
		time.Sleep(15 * time.Minute)
		synctest.Wait()

		slots := map[int]int{}
		last := map[string]time.Time{}
		for _, call := range runs.of("") {
			if reasons(call)[0] == "c every ×1" {
				slots[int(call.at.Sub(begin)/(10*time.Second))]++
			}
			if was, ok := last[call.Key]; ok {
				require.LessOrEqual(t, call.at.Sub(was), 11*time.Minute, "no key waits longer")
			}
			last[call.Key] = call.at
		}
		for slot, runs := range slots {
			require.LessOrEqual(t, runs, n/20, "slot %d", slot)
		}
		require.Greater(t, len(slots), 150, "all over 30 minutes")
		require.Len(t, last, n)
	})
}

// The jitter is per look: the times of a key don't repeat.
func TestLooksAreJittered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs ran
		c := reconcile.New("c", informer.New(store(t, "a"), nil), runs.wrap(nil), &reconcile.Options{Every: time.Minute})
		launch(t, &reconcile.Group{}, c)
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		different := map[time.Duration]bool{}
		for _, gap := range gaps(runs.of("a"))[1:] {
			require.InDelta(t, time.Minute, gap, float64(6*time.Second)+1)
			different[gap] = true
		}
		require.Greater(t, len(different), 15)
	})
}

// A key that is gone, fails or is parked has no looks; one that waits for its own
// time has.
func TestWhoIsLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store(t, "gone", "later")
		var runs ran
		look := map[string]error{
			"later":  retry.Later(time.Hour, ""),
			"after":  retry.After(errBoom, time.Hour),
			"parked": retry.Permanent(errBoom),
		}
		with(t, s, "after", "parked")
		c := reconcile.New("c", informer.New(s, nil), runs.wrap(byKey(look)), &reconcile.Options{Every: time.Minute})
		launch(t, &reconcile.Group{}, c)
		remove(t, s, "gone")
		synctest.Wait()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.Len(t, runs.of("gone"), 2)
		require.Len(t, runs.of("after"), 1)
		require.Len(t, runs.of("parked"), 1)
		require.GreaterOrEqual(t, len(runs.of("later")), 9)
		require.Equal(t, "idle", c.Explain("gone").State)
	})
}

// Without Every nothing is looked at.
func TestEveryIsOffByDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs ran
		c := reconcile.New("c", informer.New(store(t, "a"), nil), runs.wrap(nil), nil)
		launch(t, &reconcile.Group{}, c)
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Len(t, runs.of("a"), 1)
		require.Equal(t, "idle", c.Explain("a").State)
	})
}

func TestNextPhase(t *testing.T) {
	for _, a := range []struct{ elapsed, phase, every, want time.Duration }{
		{0, 3, 10, 3},
		{0, 0, 10, 10}, // later than now
		{3, 3, 10, 10},
		{4, 3, 10, 9},
		{13, 3, 10, 10},
		{12, 3, 10, 1},
		{0, 0, 1, 1},
	} {
		require.Equal(t, a.want, reconcile.NextPhase(a.elapsed, a.phase, a.every), "%+v", a)
	}
}

// A look that something else came before is no cause.
func TestEveryIsNoCauseBeforeItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs ran
		c := reconcile.New("c", informer.New(store(t, "a"), nil), runs.wrap(nil), &reconcile.Options{Every: time.Hour})
		launch(t, &reconcile.Group{}, c)
		c.Trigger("a", "by hand")
		synctest.Wait()
		require.Equal(t, []string{"trigger by hand ×1"}, reasons(runs.of("a")[1]))
	})
}
