package stepped_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/internal/stepped"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
	"github.com/stretchr/testify/require"
)

type (
	thing  = stepped.Thing
	item   = object.Item[thing]
	batch  = reflector.Batch[thing]
	page   = reflector.Page[thing]
	source = reflector.ListWatcher[thing]
	change = informer.Change[thing]
	yield  = func(batch, error) bool
)

// broken is a source with one thing wrong.
type broken struct {
	source
	list   func(ctx context.Context, src source, opts reflector.ListOptions) (page, error)
	watch  func(ctx context.Context, src source, opts reflector.WatchOptions, yield yield)
	powers func(*reflector.Powers[thing])
}

func (b broken) Powers() reflector.Powers[thing] {
	p := b.source.Powers()
	if b.powers != nil {
		b.powers(&p)
	}
	return p
}

func (b broken) List(ctx context.Context, opts reflector.ListOptions) (page, error) {
	if b.list == nil {
		return b.source.List(ctx, opts)
	}
	return b.list(ctx, b.source, opts)
}

func (b broken) Watch(ctx context.Context, opts reflector.WatchOptions) iter.Seq2[batch, error] {
	if b.watch == nil {
		return b.source.Watch(ctx, opts)
	}
	return func(yield func(batch, error) bool) { b.watch(ctx, b.source, opts, yield) }
}

// brokenStore is a store with one thing wrong.
type brokenStore struct {
	stepped.Store
	watch   func(ctx context.Context, s stepped.Store, opts reflector.WatchOptions, yield yield)
	update  func(ctx context.Context, s stepped.Store, it item) (item, error)
	list    func(ctx context.Context, s stepped.Store, opts reflector.ListOptions) (page, error)
	compact func(s stepped.Store)
}

func (b brokenStore) Watch(ctx context.Context, opts reflector.WatchOptions) iter.Seq2[batch, error] {
	if b.watch == nil {
		return b.Store.Watch(ctx, opts)
	}
	return func(yield func(batch, error) bool) { b.watch(ctx, b.Store, opts, yield) }
}

func (b brokenStore) Update(ctx context.Context, it item) (item, error) {
	if b.update == nil {
		return b.Store.Update(ctx, it)
	}
	return b.update(ctx, b.Store, it)
}

func (b brokenStore) List(ctx context.Context, opts reflector.ListOptions) (page, error) {
	if b.list == nil {
		return b.Store.List(ctx, opts)
	}
	return b.list(ctx, b.Store, opts)
}

func (b brokenStore) Compact() {
	if b.compact == nil {
		b.Store.Compact()
		return
	}
	b.compact(b.Store)
}

// TestBrokenLayersAreFound puts one fault at a time between the store and the
// informer, or between the informer and its handler. Each is found soon, and what is
// printed is short, goes wrong again, and does not without the fault.
func TestBrokenLayersAreFound(t *testing.T) {
	of := func(b broken) stepped.Config {
		return stepped.Config{Source: func(src source) source {
			mine := b
			mine.source = src
			return mine
		}}
	}
	over := func(b brokenStore) stepped.Config {
		return stepped.Config{Store: func(history int) stepped.Store {
			mine := b
			mine.Store = stepped.Memory(history)
			return mine
		}}
	}
	// each changes the batches of a watch.
	each := func(f func(*batch) bool) func(context.Context, source, reflector.WatchOptions, yield) {
		return func(ctx context.Context, src source, opts reflector.WatchOptions, yield yield) {
			for b, err := range src.Watch(ctx, opts) {
				if err == nil && !f(&b) {
					continue
				}
				if !yield(b, err) {
					return
				}
			}
		}
	}
	head := func(ctx context.Context, src source) reflector.Cursor {
		if h := src.Powers().Head; h != nil {
			at, _ := h(ctx)
			return at
		}
		return ""
	}
	for name, c := range map[string]struct {
		cfg   stepped.Config
		steps int // at most
		what  string
	}{
		"a delete is lost": {of(broken{watch: each(func(b *batch) bool {
			b.Events = slices.DeleteFunc(b.Events, func(e reflector.Event[thing]) bool { return e.Op == reflector.OpDelete })
			return true
		})}), 6, "the cache shows"},
		"an older list is accepted": {of(broken{powers: func(p *reflector.Powers[thing]) {
			if compare := p.Compare; compare != nil {
				p.Compare = func(a, b reflector.Cursor) int { return max(0, compare(a, b)) } // as if of another epoch
			}
		}}), 12, "which it was not after|a reset, though"},
		"an error is an empty list": {of(broken{list: func(ctx context.Context, src source, opts reflector.ListOptions) (page, error) {
			p, err := src.List(ctx, opts)
			if err != nil && ctx.Err() == nil {
				return page{Cursor: head(ctx, src)}, nil
			}
			return p, err
		}}), 4, "the cache shows"},
		"a partial list is taken for the whole": {of(broken{list: func(ctx context.Context, src source, opts reflector.ListOptions) (page, error) {
			p, err := src.List(ctx, opts)
			p.Next = ""
			return p, err
		}}), 8, "the cache shows"},
		"pages of several states look like one": {of(broken{list: func() func(context.Context, source, reflector.ListOptions) (page, error) {
			var first reflector.Cursor
			return func(ctx context.Context, src source, opts reflector.ListOptions) (page, error) {
				p, err := src.List(ctx, opts)
				if opts.Page == "" {
					first = p.Cursor
				}
				p.Cursor = first
				return p, err
			}
		}()}), 14, "the cache shows"},
		"a gap between list and watch": {of(broken{watch: func(ctx context.Context, src source, opts reflector.WatchOptions, yield yield) {
			if opts.After != "" {
				opts.After = head(ctx, src)
			}
			for b, err := range src.Watch(ctx, opts) {
				if !yield(b, err) {
					return
				}
			}
		}}), 5, "the cache shows"},
		"an expired cursor goes on at the end": {of(broken{watch: func(ctx context.Context, src source, opts reflector.WatchOptions, yield yield) {
			for b, err := range src.Watch(ctx, opts) {
				if errors.Is(err, reflector.ErrExpired) {
					opts.After = head(ctx, src)
					break
				}
				if !yield(b, err) {
					return
				}
			}
			for b, err := range src.Watch(ctx, opts) {
				if !yield(b, err) {
					return
				}
			}
		}}), 14, "the cache shows|can't prove"},
		"a new object looks like the old one": {of(broken{watch: each(func(b *batch) bool {
			for i := range b.Events {
				b.Events[i].ID = ""
			}
			return true
		})}), 5, "its ID right: false"},
		"a batch is split in two with one cursor": {of(broken{watch: func(ctx context.Context, src source, opts reflector.WatchOptions, yield yield) {
			for b, err := range src.Watch(ctx, opts) {
				if b.Synced && len(b.Events) > 1 {
					b.Events = b.Events[1:]
				}
				if !yield(b, err) {
					return
				}
			}
		}}), 7, "the cache shows"},
		"the store: an inclusive watch": {over(brokenStore{watch: func(ctx context.Context, s stepped.Store, opts reflector.WatchOptions, yield yield) {
			var last *batch
			for b, err := range s.Watch(ctx, opts) {
				if !yield(b, err) || last != nil && !yield(*last, nil) {
					return
				}
				if len(b.Events) == 1 && last == nil {
					b.Events = slices.Clone(b.Events)
					last = &b
				}
			}
		}}), 8, "the store's batch"},
		"the store: a version that is not looked at": {over(brokenStore{update: func(ctx context.Context, s stepped.Store, it item) (item, error) {
			if it.Version != "" {
				it.Version = object.Any
			}
			return s.Update(ctx, it)
		}}), 2, "backend: version conflict"},
		"the store: a page too many": {over(brokenStore{list: func(ctx context.Context, s stepped.Store, opts reflector.ListOptions) (page, error) {
			p, err := s.List(ctx, opts)
			if opts.Page != "" && len(p.Items) > 1 {
				p.Items = p.Items[1:]
			}
			return p, err
		}}), 8, "the store's page"},
		"the store: what expired is still told": {over(brokenStore{compact: func(stepped.Store) {}}), 9, "the store's"},
		"a handler is told out of order": {stepped.Config{Handler: func(f func(change)) func(change) {
			var held *change
			return func(c change) {
				if held == nil && c.Type == informer.Updated {
					held = &c
					return
				}
				f(c)
				if held != nil {
					f(*held)
					held = nil
				}
			}
		}}, 6, "the handler was told"},
		"a handler is told twice": {stepped.Config{Handler: func(f func(change)) func(change) {
			return func(c change) {
				f(c)
				f(c)
			}
		}}, 4, "the handler was told"},
		"a handler is not told of a delete": {stepped.Config{Handler: func(f func(change)) func(change) {
			return func(c change) {
				if c.Type != informer.Deleted {
					f(c)
				}
			}
		}}, 6, "the handler was told"},
		"a handler's Old is not what it was told": {stepped.Config{Handler: func(f func(change)) func(change) {
			cached := map[string]thing{}
			return func(c change) {
				// As if something came between what it was told and this.
				if before, ok := cached[c.Key]; ok && c.Type == informer.Deleted {
					c.Old = before
				}
				cached[c.Key] = c.Old
				f(c)
			}
		}}, 8, "the handler was told deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var f *stepped.Failure
			cfg := c.cfg
			for cfg.Seed = 1; f == nil && cfg.Seed <= 500; cfg.Seed++ {
				f = stepped.Find(t, cfg)
			}
			require.NotNil(t, f, "not found")
			short := stepped.Shrink(t, cfg, f)
			t.Logf("seed %d, %d steps, then %d: %s\n%s", f.Seed, f.Steps, short.Steps, short.What, short.Text)
			require.Regexp(t, c.what, short.What)
			require.LessOrEqual(t, short.Steps, c.steps, "%s", short)
			again := stepped.Replay(t, c.cfg, short.Text)
			require.NotNil(t, again, "it does not go wrong again")
			require.Equal(t, short.What, again.What)
			require.Nil(t, stepped.Replay(t, stepped.Config{}, short.Text), "it goes wrong without the fault")
		})
	}
}
