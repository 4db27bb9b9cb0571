package memory_test

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/homeostat/homeostat/backend/memory"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
	"github.com/stretchr/testify/require"
)

// TestScale: with 100 000 objects, 1 000 watchers and 10 000 writes each watcher
// ends at the store's state, or is told that it can't and begins anew; the heap
// stays under 1 GiB. What the writes do is drawn beforehand, so that a watcher need
// not hold the objects to know that it has the right ones: see script.
//
// The heap is runtime.MemStats.HeapAlloc, garbage not collected yet included, read
// once for every hundred writes and once when all is over; what is asserted is the
// highest of all readings.
func TestScale(t *testing.T) {
	objects, watchers, writes := 100_000, 1_000, 10_000
	if racing || testing.Short() {
		objects, watchers, writes = 5_000, 50, 1_000
	}
	plan := newScript(objects, writes)
	// One in ten watchers sleeps after its list for longer than the history.
	s := memory.New[int](&memory.Options{History: writes / 4})
	ctx := t.Context()
	for i := range objects {
		must(s.Create(ctx, plan.keys[i], 0))
	}
	half := make(chan struct{}) // closed when half of the writes are done
	start, peak := time.Now(), uint64(0)
	measure := func() {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		peak = max(peak, m.HeapAlloc)
	}
	var expired, events atomic.Int64
	var wg, listed sync.WaitGroup
	listed.Add(watchers)
	for i := range watchers {
		wg.Go(func() {
			w := scaleWatcher{plan: plan, store: s, paged: i%2 == 0, begun: sync.OnceFunc(listed.Done)}
			if i%10 < 2 && i/10%2 == 0 { // some that list and some that stream
				w.sleeps = half
			}
			if err := w.run(ctx); err != nil {
				t.Errorf("watcher %d: %v", i, err)
			}
			expired.Add(int64(w.expired))
			events.Add(int64(w.events))
		})
	}
	// Writes begin while the lists are under way, and go on among the watchers.
	listed.Wait()
	for i := range writes {
		if err := plan.write(ctx, s, i); err != nil {
			t.Fatal(err)
		}
		if i%100 == 0 {
			measure()
		}
		if i == writes/2 {
			close(half)
		}
		if i%8 == 0 { // a burst, then everybody's turn
			runtime.Gosched()
		}
	}
	wg.Wait()
	measure()
	t.Logf("%d objects, %d watchers, %d writes: %v, %d events, %d times expired, heap up to %d MiB",
		objects, watchers, writes, time.Since(start).Round(time.Millisecond), events.Load(), expired.Load(), peak>>20)
	require.Less(t, peak, uint64(1<<30))
	require.GreaterOrEqual(t, expired.Load(), int64(watchers/10), "those that slept")
	require.Equal(t, plan.sums[len(plan.sums)-1], plan.sumOf(must(s.List(ctx, reflector.ListOptions{})).Items), "the store itself")
}

// script is what is written, and the sum of each state: of the hashes of what is
// there, by key and version. A watcher whose list has the sum of its revision, and
// which is then told exactly the writes that follow, in order, has every state's
// sum, and in the end that of the store.
type script struct {
	seed    maphash.Seed
	objects int
	keys    []string
	steps   []step
	sums    []uint64 // by revision
}

type step struct {
	key  int
	gone bool
}

func newScript(objects, writes int) *script {
	p := &script{seed: maphash.MakeSeed(), objects: objects, sums: []uint64{0}}
	versions := make([]int, objects)
	for i := range objects {
		p.keys = append(p.keys, fmt.Sprintf("object-%06d", i))
		versions[i] = i + 1
		p.sums = append(p.sums, p.sums[i]+p.hash(p.keys[i], strconv.Itoa(i+1)))
	}
	r := rand.New(rand.NewPCG(1, 5))
	for rev := objects + 1; rev <= objects+writes; rev++ {
		st := step{key: r.IntN(objects)}
		was := versions[st.key]
		st.gone = was > 0 && r.IntN(4) == 0
		sum := p.sums[rev-1]
		if was > 0 {
			sum -= p.hash(p.keys[st.key], strconv.Itoa(was))
		}
		versions[st.key] = rev
		if st.gone {
			versions[st.key] = 0
		} else {
			sum += p.hash(p.keys[st.key], strconv.Itoa(rev))
		}
		p.steps, p.sums = append(p.steps, st), append(p.sums, sum)
	}
	return p
}

func (p *script) hash(key, version string) uint64 {
	return maphash.String(p.seed, key)*31 ^ maphash.String(p.seed, version)
}

func (p *script) sumOf(items []object.Item[int]) (sum uint64) {
	for _, it := range items {
		sum += p.hash(it.Key, string(it.Version))
	}
	return sum
}

func (p *script) write(ctx context.Context, s *memory.Store[int], i int) (err error) {
	st := p.steps[i]
	key := p.keys[st.key]
	if st.gone {
		_, err = s.Delete(ctx, key, object.Any)
		return err
	}
	if _, err = s.Update(ctx, object.Item[int]{Key: key, Version: object.Any, Object: i}); errors.Is(err, reflector.ErrNotFound) {
		_, err = s.Create(ctx, key, i)
	}
	return err
}

type scaleWatcher struct {
	plan            *script
	store           *memory.Store[int]
	paged           bool
	begun           func()
	sleeps          <-chan struct{} // after the first list; nil: not at all
	rev             int             // what it has, once it has a list
	expired, events int
}

func (w *scaleWatcher) run(ctx context.Context) error {
	for {
		err := w.session(ctx)
		if !errors.Is(err, reflector.ErrExpired) {
			return err
		}
		w.expired++
	}
}

func (w *scaleWatcher) session(ctx context.Context) error {
	opts := reflector.WatchOptions{Initial: true}
	if w.paged {
		at, err := w.list(ctx)
		if err != nil {
			return err
		}
		opts = reflector.WatchOptions{After: at}
		w.sleep()
	}
	var sum uint64
	listing := false
	for b, err := range w.store.Watch(ctx, opts) {
		w.begun()
		if err != nil {
			return err
		}
		listing = listing || b.Reset
		for i := range b.Events {
			e := &b.Events[i]
			if listing {
				sum += w.plan.hash(e.Key, string(e.Version))
			} else if err := w.event(e, b.Cursor); err != nil {
				return err
			}
		}
		if b.Synced {
			listing = false
			if err := w.has(sum, b.Cursor); err != nil {
				return err
			}
			w.sleep()
		}
		if !listing && w.rev == len(w.plan.sums)-1 {
			return nil
		}
	}
	return errors.New("the watch ended")
}

func (w *scaleWatcher) sleep() {
	if w.sleeps != nil {
		<-w.sleeps
		w.sleeps = nil
	}
}

// list takes the objects page by page.
func (w *scaleWatcher) list(ctx context.Context) (reflector.Cursor, error) {
	var sum uint64
	opts := reflector.ListOptions{Limit: 500}
	for {
		p, err := w.store.List(ctx, opts)
		w.begun()
		if err != nil {
			return "", err
		}
		sum += w.plan.sumOf(p.Items)
		if opts.Page = p.Next; p.Next == "" {
			return p.Cursor, w.has(sum, p.Cursor)
		}
	}
}

// has: the watcher has all of one state.
func (w *scaleWatcher) has(sum uint64, at reflector.Cursor) error {
	w.rev = revOf(at)
	if sum != w.plan.sums[w.rev] {
		return fmt.Errorf("a list at %d that is not the state of then", w.rev)
	}
	return nil
}

// event: exactly what comes next.
func (w *scaleWatcher) event(e *reflector.Event[int], at reflector.Cursor) error {
	w.rev++
	w.events++
	st := w.plan.steps[w.rev-w.plan.objects-1]
	if revOf(at) != w.rev || e.Key != w.plan.keys[st.key] || (e.Op == reflector.OpDelete) != st.gone || string(e.Version) != strconv.Itoa(w.rev) {
		return fmt.Errorf("at %s was told %v of %s in %s, the script has at %d %v", at, e.Op, e.Key, e.Version, w.rev, st)
	}
	return nil
}
