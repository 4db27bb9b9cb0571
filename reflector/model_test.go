package reflector_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/retry"
)

// TestG1_G2_G9_Histories lets sources of all kinds go through random histories
// of changes and faults. At each moment what readers see is one state that the
// source had, at the position that the sink was told (so that no delete comes
// from a partial list); no key goes back within an epoch; and once all is calm
// the sink equals the source.
func TestG1_G2_G9_Histories(t *testing.T) {
	seeds, steps := 2000, 60
	if testing.Short() {
		seeds = 200
	}
	var sum reflector.Status
	torn := 0
	for seed := range uint64(seeds) {
		synctest.Test(t, func(t *testing.T) {
			st := history(t, seed, steps)
			sum.Resets += st.Resets
			sum.Replays += st.Replays
			sum.Missed += st.Missed
			sum.Lists += st.Lists
			sum.Watches += st.Watches
			if st.Torn {
				torn++
			}
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	// The weather was as bad as it was meant to be.
	if seeds >= 2000 && (sum.Resets < 500 || sum.Replays < 500 || sum.Missed < 500 || torn == 0) {
		t.Errorf("resets %d, replays %d, missed %d, torn %d", sum.Resets, sum.Replays, sum.Missed, torn)
	}
	t.Logf("lists %d, watches %d, resets %d, replays %d, missed %d, torn %d", sum.Lists, sum.Watches, sum.Resets, sum.Replays, sum.Missed, torn)
}

func history(t *testing.T, seed uint64, steps int) reflector.Status {
	rng := rand.New(rand.NewPCG(seed, 1))
	w := newWorld(rng)
	s := newSink(t)
	r := reflector.New[string](w, s, &reflector.Options{
		PageSize: 3, Open: 10 * time.Second, Session: time.Minute, ResetAfter: 20 * time.Second,
		Backoff: retry.Backoff{Max: 4 * time.Second},
	})
	inPlace, blind := false, false
	versions, epoch := map[string]string{}, ""
	weak := func() bool { return !w.powers.SnapshotPages && w.powers.Paged && w.powers.Compare == nil }
	s.onShow = func(state map[string]item, why string) {
		if weak() {
			return // the weaker promise: pages may mix states
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		text := canon(state)
		if !w.positions && why == "commit" && !w.texts[text] {
			t.Errorf("%s: %s was never a state", why, text)
		}
		// What came without a position is checked by its versions only, and
		// nobody can tell whether a list is older than that.
		last := s.log[len(s.log)-1]
		placed := w.positions && strings.Contains(last, "@")
		if placed && w.known[s.cursor] != text {
			t.Errorf("%s: shown at %s: %s\nwas: %s", last, s.cursor, text, w.known[s.cursor])
		}
		if blind && why == "commit" {
			clear(versions)
		}
		blind = w.positions && !placed
		if e, _, _ := strings.Cut(string(s.cursor), "/"); e != epoch {
			epoch, versions = e, map[string]string{}
		}
		for k, it := range state {
			if string(it.Version) < versions[k] && !inPlace {
				t.Errorf("%s: %s went back from %s to %s", why, k, versions[k], it.Version)
			}
			versions[k] = string(it.Version)
		}
	}
	refuse := 0
	fail := func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if refuse > 0 {
			refuse--
			return errBoom
		}
		return nil
	}
	s.onApply = func(batch) error { return fail() }
	s.onStage = func([]item) error { return fail() }
	s.onCommit = func(cursor) error { return fail() }
	begin(t, r, s)

	for range steps {
		synctest.Wait()
		w.mu.Lock()
		pause := time.Duration(0)
		switch n := rng.IntN(100); {
		case n < 45:
			w.write()
		case n < 60:
			pause = time.Duration(rng.IntN(3000)) * time.Millisecond
		case n < 64:
			pause = time.Duration(rng.IntN(90)) * time.Second
		case n < 70:
			w.compact()
		case n < 73:
			if w.positions {
				w.restore(false)
			}
		case n < 79:
			for _, x := range w.ordered() {
				x.stop([]error{nil, errBoom, reflector.ErrExpired, reflector.ErrFutureCursor}[rng.IntN(4)])
			}
		case n < 82:
			for _, x := range w.ordered() {
				x.silent = true
			}
		case n < 86:
			w.down = !w.down
		case n < 90:
			refuse = rng.IntN(3)
		case n < 94:
			w.mu.Unlock()
			r.Relist("test")
			w.mu.Lock()
		default:
			pause = time.Duration(rng.IntN(50)) * time.Millisecond
		}
		w.mu.Unlock()
		time.Sleep(pause)
	}

	synctest.Wait()
	w.mu.Lock()
	w.stormy, w.down, refuse = false, false, 0
	if w.positions && rng.IntN(4) == 0 {
		inPlace = true
		w.restore(true)
	}
	truth := canon(w.state)
	w.mu.Unlock()
	for range 60 {
		after(10 * time.Second)
		if st := r.Status(); st.State == reflector.Watching && same(s, truth) {
			break
		}
	}
	st := r.Status()
	if !same(s, truth) || st.State != reflector.Watching || st.Err != nil {
		t.Errorf("sink  %s\nworld %s\n%+v\n%+v", canon(s.state), truth, st, w.powers)
		if p, ok := errors.AsType[*reflector.PanicError](st.Err); ok {
			t.Logf("%s", p.Stack)
		}
	}
	if want := weak(); st.Torn && !want {
		t.Error("torn, though the source is not")
	}
	if t.Failed() {
		t.Logf("seed %d, powers %+v", seed, w.powers)
	}
	return st
}

func same(s *sink, truth string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return canon(s.state) == truth
}
