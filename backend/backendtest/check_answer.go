package backendtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

func answerChecks[T any]() []check[T] {
	return []check[T]{
		{Check{"write/lost-answer", []string{"backend 9"}, "an error that is not ErrOutcomeUnknown means that nothing was written, also when the context ends in the middle of a call"}, lostAnswer[T]},
		{Check{"write/unsupported", []string{"backend 10"}, "what the store can't do is errors.ErrUnsupported, and changes nothing"}, unsupported[T]},
		{Check{"write/seen-by-reads", []string{"backend 11"}, "a write is seen by Get and List at once, and told by every watch"}, seenByReads[T]},
		{Check{"write/dry-run", []string{"backend 12"}, "a dry run is checked and answered, and not done"}, dryRun[T]},
		{Check{"write/shared", []string{"backend 13"}, "neither what was given to the store nor what it answered is changed afterwards"}, shared[T]},
	}
}

// ticking is a context that ends when it is looked at once too often.
type ticking struct {
	context.Context
	end  context.CancelFunc
	left atomic.Int64
}

func ending(ctx context.Context, looks int) *ticking {
	ctx, cancel := context.WithCancel(ctx)
	t := &ticking{Context: ctx, end: cancel}
	t.left.Store(int64(looks))
	return t
}

func (t *ticking) tick() {
	if t.left.Add(-1) < 0 {
		t.end()
	}
}

// Err is a look.
func (t *ticking) Err() error { t.tick(); return t.Context.Err() }

// Done is one, too.
func (t *ticking) Done() <-chan struct{} { t.tick(); return t.Context.Done() }

// doubt is a write whose context ended somewhere.
type doubt[T any] struct {
	op, key string
	before  *object.Item[T] // nil when there was none
	after   *T              // nil for a delete
	err     error
}

func lostAnswer[T any](k *kit[T]) {
	w := k.writer()
	var all []doubt[T]
	n := 0
	// Each way of ending strikes one write of each kind.
	try := func(with func(context.Context) (context.Context, func())) {
		for _, op := range []string{"Create", "Update", "Patch", "Delete"} {
			key := k.h.Key(n)
			n++
			d := doubt[T]{op: op, key: key}
			if op != "Create" {
				item := w.new(key)
				d.before = &item
			}
			obj := k.object()
			if op != "Delete" {
				d.after = &obj
			}
			_, d.err = w.call(op, func(ctx context.Context) (object.Item[T], error) {
				ctx, stop := with(ctx)
				defer stop()
				switch op {
				case "Create":
					return w.b.Create(ctx, key, obj)
				case "Update":
					return w.b.Update(ctx, object.Item[T]{Key: key, Version: object.Any, Object: obj})
				case "Patch":
					return w.b.Patch(ctx, key, w.byField(d.before.Object, obj)[0], object.Any)
				}
				return w.b.Delete(ctx, key, object.Any)
			})
			if errors.Is(d.err, errStuck) || errors.Is(d.err, errPanic) {
				k.must(d.err)
			}
			if w.supports(op, d.err) {
				all = append(all, d)
			}
		}
	}
	for looks := range 6 {
		try(func(ctx context.Context) (context.Context, func()) {
			t := ending(ctx, looks)
			return t, t.end
		})
	}
	for _, d := range []time.Duration{0, 20 * time.Microsecond, 200 * time.Microsecond, 2 * time.Millisecond} {
		try(func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithTimeout(ctx, d)
			return ctx, cancel
		})
	}
	k.quiet() // what was not written now is not written later
	for _, d := range all {
		k.must(k.ifStale(w.st, func() error { return w.resolve(d) }))
	}
}

// resolve looks what became of a write.
func (w *writer[T]) resolve(d doubt[T]) error {
	now, err := w.get(d.key)
	there := err == nil
	if err != nil && !errors.Is(err, backend.ErrNotFound) {
		return err
	}
	untouched := !there && d.before == nil || there && d.before != nil && w.same(now, *d.before)
	done := there == (d.after != nil) && !untouched
	switch {
	case d.err == nil && !done:
		return fmt.Errorf("%s answered no error and was not done", d.op)
	case d.err != nil && !errors.Is(d.err, backend.ErrOutcomeUnknown) && !untouched:
		return fmt.Errorf("%s was done, and answered: %w", d.op, d.err)
	}
	return nil
}

func unsupported[T any](k *kit[T]) {
	w := k.writer()
	item := w.new(k.h.Key(0))
	for op, write := range w.writes(item, object.Any) {
		if _, err := write(); !w.supports(op, err) {
			w.still(item, op+", which is not supported")
			continue
		}
		w.delete(item.Key, object.Any)
		if again, err := w.create(item.Key, k.object()); err == nil {
			item = again
		}
	}
	dry, err := dryRunOf(k, w.b)
	if w.supports("DryRun", err) {
		k.must(err)
		if dry == nil {
			k.fail("DryRun gives no backend, and no error")
		}
	}
}

func dryRunOf[T any](k *kit[T], b backend.Backend[T]) (backend.Backend[T], error) {
	return call(k.ctx, "DryRun", k.h.Wait, k.h.Wait, func(context.Context) (backend.Backend[T], error) { return b.DryRun() })
}

func seenByReads[T any](k *kit[T]) {
	w := k.writer()
	st := w.st
	c := st.client()
	c.exact = false
	k.must(c.follow("the first full state", func() bool { return c.opened && c.current() }))
	seen := func(op string, want object.Item[T]) {
		k.must(k.ifStale(st, func() error {
			now, err := w.get(want.Key)
			if err != nil || !w.same(now, want) {
				return fmt.Errorf("a Get after %s does not give what was written; error: %v", op, err)
			}
			l, err := st.list(k.ctx, reflector.ListOptions{})
			if err != nil || !w.same(l.items[want.Key], want) {
				return fmt.Errorf("a List after %s does not give what was written; error: %v", op, err)
			}
			return nil
		}))
		k.must(c.follow("what "+op+" wrote", func() bool { return w.same(c.state[want.Key], want) }))
	}
	item := w.new(k.h.Key(0))
	seen("Create", item)
	for range 3 {
		if got, err := w.update(w.other(item, object.Any)); w.supports("Update", err) {
			k.must(err)
			item = got
			seen("Update", item)
		}
		p, _ := w.anyPatch(item)
		if got, err := w.patch(item.Key, p, object.Any); w.supports("Patch", err) {
			k.must(err)
			item = got
			seen("Patch", item)
		}
	}
	gone, err := w.delete(item.Key, object.Any)
	w.can("Delete", gone, err)
	w.absent(item.Key, "Delete")
	k.must(k.ifStale(st, func() error {
		l, err := st.list(k.ctx, reflector.ListOptions{})
		if _, there := l.items[item.Key]; there {
			return errors.New("a List after Delete still shows the object")
		}
		return err
	}))
	k.must(c.follow("what Delete wrote", func() bool { _, there := c.state[item.Key]; return !there }))
}

func dryRun[T any](k *kit[T]) {
	w := k.writer()
	inner, err := dryRunOf(k, w.b)
	w.can("DryRun", object.Item[T]{}, err)
	if inner == nil {
		k.fail("DryRun gives no backend, and no error")
	}
	if again, err := dryRunOf(k, inner); err != nil || again == nil {
		k.fail("a dry run of a dry run: %w", orNil(err))
	}
	item := w.new(k.h.Key(0))
	before := maps.Clone(w.all(item))
	told := w.listen()
	dry := &writer[T]{st: w.st, b: inner, aside: true}

	obj := k.object()
	got, err := dry.create(k.h.Key(1), obj)
	if w.supports("Create", err) {
		k.must(err)
		if got.Version != "" || got.ID != "" || got.Key != k.h.Key(1) || !k.h.Equal(got.Object, obj) {
			k.fail("a dry Create answers key %q, version %q, ID %q: no version came about, and no ID", got.Key, got.Version, got.ID)
		}
	}
	for _, v := range []object.Version{object.Any, item.Version} {
		if v == "" {
			continue
		}
		for op, write := range dry.writes(item, v) {
			got, err := write()
			if !w.supports(op, err) {
				continue
			}
			k.must(err)
			if got.Key != item.Key || got.Version != item.Version || got.ID != item.ID {
				k.fail("a dry %s answers version %q, ID %q; the object has version %q, ID %q", op, got.Version, got.ID, item.Version, item.ID)
			}
		}
	}
	if now, err := dry.get(item.Key); !w.st.powers.StaleLists && (err != nil || !w.same(now, item)) {
		k.fail("Get of a dry run does not give what is there; error: %v", err)
	}
	refused := func(what string, err, want error) {
		if w.supports(what, err) && !errors.Is(err, want) {
			k.fail("a dry %s that is to be %q is: %w", what, want, orNil(err))
		}
	}
	_, err = dry.create(item.Key, k.object())
	refused("Create", err, backend.ErrExists)
	_, err = dry.create("", k.object())
	refused("Create", err, backend.ErrNoKey)
	none := item
	none.Key = k.h.Key(2)
	for _, c := range []struct {
		item object.Item[T]
		v    object.Version
		want error
	}{{item, "", backend.ErrNoVersion}, {none, object.Any, backend.ErrNotFound}, {item, "backendtest-no-such-version", backend.ErrConflict}} {
		if c.want == backend.ErrConflict && item.Version == "" {
			continue
		}
		for op, write := range dry.writes(c.item, c.v) {
			_, err := write()
			refused(op, err, c.want)
		}
	}
	told("a dry run")
	now := w.all(item)
	for key, item := range before {
		if !w.same(now[key], item) {
			k.fail("after a dry run, %q is in another state", key)
		}
	}
	if len(now) != len(before) {
		k.fail("after a dry run there are %d objects, were %d", len(now), len(before))
	}
}

func shared[T any](k *kit[T]) {
	w := k.writer()
	type kept struct {
		what string
		obj  T
		text string
	}
	var all []kept
	keep := func(what string, obj T) {
		text, err := json.Marshal(obj)
		if err != nil {
			k.fail("%w: an object is no JSON: %w", ErrHarness, err)
		}
		all = append(all, kept{what, obj, string(text)})
	}
	obj := k.object()
	keep("what was given to Create", obj)
	item, err := w.create(k.h.Key(0), obj)
	item = w.can("Create", item, err)
	keep("what Create answered", item.Object)
	for range 2 {
		next := w.other(item, object.Any)
		keep("what was given to Update", next.Object)
		if got, err := w.update(next); w.supports("Update", err) {
			k.must(err)
			item = got
			keep("what Update answered", got.Object)
		}
		for _, item := range w.all(item) {
			keep("what List answered", item.Object)
		}
		now, err := w.get(item.Key)
		k.must(err)
		keep("what Get answered", now.Object)
		p, _ := w.anyPatch(item)
		if got, err := w.patch(item.Key, p, object.Any); w.supports("Patch", err) {
			k.must(err)
			item = got
			keep("what Patch answered", got.Object)
		}
	}
	if got, err := w.delete(item.Key, object.Any); w.supports("Delete", err) {
		k.must(err)
		keep("what Delete answered", got.Object)
	}
	for _, kept := range all {
		if text, err := json.Marshal(kept.obj); err != nil || string(text) != kept.text {
			k.fail("%s was changed by a later write: it was %s, is %s", kept.what, kept.text, text)
		}
	}
}
