package backendtest

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// store is a fixture with what was written to it.
type store[T any] struct {
	k      *kit[T]
	fx     *Fixture[T]
	src    reflector.ListWatcher[T]
	powers reflector.Powers[T]
	hist   *history[T]
	seen   *registry[T]
}

// use takes src for the adapter from now on.
func (st *store[T]) use(src reflector.ListWatcher[T]) {
	k := st.k
	if src == nil {
		k.fail("%w: there is no Source", ErrHarness)
	}
	p, err := call(k.ctx, "Powers", k.h.Wait, k.h.Wait, func(context.Context) (reflector.Powers[T], error) {
		return src.Powers(), nil
	})
	k.must(err)
	st.src, st.powers = src, p
	for name, there := range map[string]bool{
		"Paged": p.Paged, "SnapshotPages": p.SnapshotPages, "Initial": p.Initial, "Progress": p.Progress,
		"ResumeProven": p.ResumeProven, "KeysOnly": p.KeysOnly, "Compare": p.Compare != nil,
		"Reached": p.Reached != nil, "Head": p.Head != nil, "Get": p.Get != nil, "StaleLists": !p.StaleLists,
		"Backend": st.backend() != nil, "Harness.Restart": st.fx.Restart != nil, "Harness.Compact": st.fx.Compact != nil,
		"Harness.Forget": st.fx.Forget != nil, "Harness.Cut": st.fx.Cut != nil, "Harness.Down": st.fx.Down != nil,
		"Harness.Spoil": st.fx.Spoil != nil,
		"Harness.Write": st.fx.Write != nil || st.backend() != nil,
	} {
		if !there {
			k.run.lack(name)
		}
	}
}

// backend is the write side; nil when there is none.
func (st *store[T]) backend() backend.Backend[T] {
	b, _ := st.src.(backend.Backend[T])
	return b
}

// do has the harness do something with the store; the check is skipped if it can't.
func (st *store[T]) do(name string, f func(context.Context) error) {
	k := st.k
	k.need("Harness."+name, f != nil)
	_, err := call(k.ctx, "Fixture."+name, k.harnessTime(), k.h.Wait, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, f(ctx)
	})
	if errors.Is(err, errors.ErrUnsupported) {
		k.skip("Harness." + name)
	}
	k.must(err)
}

func (k *kit[T]) put(key string) Change[T]  { return Change[T]{Key: key, Object: k.object()} }
func (k *kit[T]) gone(key string) Change[T] { return Change[T]{Key: key, Delete: true} }

// tryWrite makes changes in one step, for any goroutine; nothing is noted of them.
func (st *store[T]) tryWrite(changes ...Change[T]) error {
	k := st.k
	_, err := call(k.ctx, "Fixture.Write", k.harnessTime(), k.h.Wait, func(ctx context.Context) (struct{}, error) {
		if st.fx.Write != nil {
			return struct{}{}, st.fx.Write(ctx, changes...)
		}
		if len(changes) != 1 || st.backend() == nil {
			return struct{}{}, errors.ErrUnsupported
		}
		return struct{}{}, change(ctx, st.backend(), changes[0])
	})
	return err
}

// change makes one change by the methods of a backend.
func change[T any](ctx context.Context, b backend.Backend[T], c Change[T]) error {
	if c.Delete {
		if _, err := b.Delete(ctx, c.Key, object.Any); err != nil && !errors.Is(err, backend.ErrNotFound) {
			return err
		}
		return nil
	}
	const tries = 20 // others may create and delete it meanwhile, but not for ever
	var err error
	for range tries {
		_, err = b.Update(ctx, object.Item[T]{Key: c.Key, Version: object.Any, Object: c.Object})
		if !errors.Is(err, backend.ErrNotFound) {
			return err
		}
		if _, err = b.Create(ctx, c.Key, c.Object); !errors.Is(err, backend.ErrExists) {
			return err
		}
	}
	return fmt.Errorf("%w: %q: %w", errNeither, c.Key, err)
}

// errNeither: a key is neither there nor not.
var errNeither = errors.New("an Update finds nothing, and a Create finds that it exists")

// write makes one change, which is a step of the history.
func (st *store[T]) write(c Change[T]) {
	st.k.need("Harness.Write", st.fx.Write != nil || st.backend() != nil)
	err := st.tryWrite(c)
	if errors.Is(err, errors.ErrUnsupported) {
		st.k.skip("Harness.Write")
	}
	st.k.must(err)
	st.hist.add(c)
}

// together makes changes in one step; false when that can't be done.
func (st *store[T]) together(changes ...Change[T]) bool {
	err := st.tryWrite(changes...)
	if errors.Is(err, errors.ErrUnsupported) {
		st.k.run.lack("Transactions")
		return false
	}
	st.k.must(err)
	st.hist.add(changes...)
	return true
}

// fill puts n objects, in one step of the history, while nobody watches.
func (st *store[T]) fill(n int) {
	const atOnce = 50
	var all []Change[T]
	for i := range n {
		all = append(all, st.k.put(st.k.h.Key(i)))
	}
	single := false
	for rest := all; len(rest) > 0; {
		size := min(atOnce, len(rest))
		if !single {
			err := st.tryWrite(rest[:size]...)
			if single = errors.Is(err, errors.ErrUnsupported); single {
				st.k.run.lack("Transactions")
			} else {
				st.k.must(err)
			}
		}
		if single {
			size = len(rest)
			st.spread(rest)
		}
		rest = rest[size:]
	}
	st.hist.add(all...)
}

// spread makes changes one by one, a few at a time.
func (st *store[T]) spread(changes []Change[T]) {
	const workers = 4
	done := make(chan error, workers)
	for w := range workers {
		go func() {
			var err error
			for i := w; i < len(changes) && err == nil; i += workers {
				err = st.tryWrite(changes[i])
			}
			done <- err
		}()
	}
	var all []error
	for range workers {
		all = append(all, <-done)
	}
	if err := errors.Join(all...); errors.Is(err, errors.ErrUnsupported) {
		st.k.skip("Harness.Write")
	} else {
		st.k.must(err)
	}
}

// page is one call of List.
func (st *store[T]) page(ctx context.Context, opts reflector.ListOptions) (reflector.Page[T], error) {
	k := st.k
	page, err := call(ctx, "List", k.h.Wait, k.h.Wait, func(ctx context.Context) (reflector.Page[T], error) {
		return st.src.List(ctx, opts)
	})
	if err != nil {
		return page, err
	}
	for _, item := range page.Items {
		if item.Key == "" {
			k.note("object/identity", "a list has an object without a key")
		}
		if !opts.KeysOnly {
			st.saw("a list", item)
		}
	}
	if page.Cursor != "" {
		k.run.mu.Lock()
		k.run.facts.positions = true
		k.run.mu.Unlock()
	}
	return page, nil
}

// listing is a whole list.
type listing[T any] struct {
	items map[string]object.Item[T]
	at    reflector.Cursor // the first page's
	last  reflector.Cursor // the last page's
	pages []int            // how many items each had
	twice []string         // keys that were in it more than once
}

// list follows pages to the end, from the first or a later one.
func (st *store[T]) list(ctx context.Context, opts reflector.ListOptions) (listing[T], error) {
	l := listing[T]{items: map[string]object.Item[T]{}}
	for {
		page, err := st.page(ctx, opts)
		if err != nil {
			return l, err
		}
		l.add(page)
		if page.Next == "" {
			return l, nil
		}
		if page.Next == opts.Page || len(l.pages) > 10*(st.k.h.Many+100) {
			return l, fmt.Errorf("a list: its pages do not end: after %d of them there is still another, %q", len(l.pages), page.Next)
		}
		opts.Page = page.Next
	}
}

func (l *listing[T]) add(page reflector.Page[T]) {
	if len(l.pages) == 0 {
		l.at = page.Cursor
	}
	if l.items == nil {
		l.items = map[string]object.Item[T]{}
	}
	l.last = page.Cursor
	l.pages = append(l.pages, len(page.Items))
	for _, item := range page.Items {
		if _, twice := l.items[item.Key]; twice {
			l.twice = append(l.twice, item.Key)
		}
		l.items[item.Key] = item
	}
}

// settled lists until the list is the present state: at once, or, where lists may
// be stale, in the end. Then something is written before, since an older state may
// look like the present one.
func (st *store[T]) settled() listing[T] {
	var l listing[T]
	if st.powers.StaleLists {
		st.write(st.k.put(st.k.h.Key(markers)))
	}
	f := func() (err error) {
		if l, err = st.list(st.k.ctx, reflector.ListOptions{}); err != nil {
			return err
		}
		if diff := st.hist.differs(l.items, st.hist.now()); diff != "" {
			return fmt.Errorf("the list is not the present state: %s", diff)
		}
		return nil
	}
	if st.powers.StaleLists {
		st.k.must(st.k.soon(f))
	} else {
		st.k.must(f())
	}
	return l
}

// markers is the key of what is written for no other reason than to be seen.
const markers = 97

// positional says that the source has positions, as far as was seen.
func (st *store[T]) positional() bool {
	st.k.run.mu.Lock()
	defer st.k.run.mu.Unlock()
	return st.k.run.facts.positions
}

// needPositions skips the check for sources without any.
func (st *store[T]) needPositions() {
	if !st.positional() {
		l := st.settled()
		st.k.need("Cursors", l.at != "" || st.positional())
	}
}

// client is a consumer of this store that stands at what was listed just now.
func (st *store[T]) client() *client[T] {
	l := st.settled()
	c := &client[T]{st: st, state: maps.Clone(l.items), at: l.at, whole: true, known: st.hist.last(), exact: st.positional()}
	c.here()
	return c
}
