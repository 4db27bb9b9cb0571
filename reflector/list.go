package reflector

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/homeostat/homeostat/object"
)

// held is a list that must not be shown yet, since its pages show different
// states: it is shown once a watch from the first page's cursor has passed the
// last one's (rule 5).
type held[T any] struct {
	into     *staged[T]
	items    map[string]object.Item[T]
	faults   map[string]Fault
	from, to Cursor
}

// list takes a full state page by page. It gives the list when that is to be
// held back, and nil when it was shown.
func (c *cycle[T]) list(ctx context.Context) (h *held[T], err error) {
	if err := c.opts.Budget.Wait(ctx); err != nil {
		return nil, err
	}
	c.answer()
	c.track.enter(Listing)
	l := listing[T]{cycle: c, into: c.begin(), hold: c.buffer}
	c.auditing = false
	l.opts.IfModified = c.whole
	if c.opts.Freshness == Any && !c.synced && !c.latest {
		l.opts.Freshness = Any
	}
	c.buffer = false
	defer func() {
		if h == nil {
			l.into.abort()
		}
	}()
	// A list of many pages may take longer than its tokens live. After two that
	// did, everything is asked for at once.
	if c.powers.Paged && c.opts.PageSize > 0 && c.tokens < 2 {
		l.opts.Limit = c.opts.PageSize
	}
	switch err := l.read(ctx); {
	case err == nil:
		c.tokens = 0
		return l.finish()
	case errors.Is(err, errSame):
		return nil, l.into.unchanged(c.cursor)
	case l.pages > 0 && errors.Is(err, ErrExpired):
		c.tokens++
		return nil, err
	default:
		// What no replica could answer is asked of the latest state, once and at once.
		moot := errors.Is(err, ErrExpired) || errors.Is(err, ErrFutureCursor)
		if moot && l.opts.Freshness == Any {
			c.latest = true
			return nil, errAgain
		}
		return nil, err
	}
}

// errSame: the list says that nothing has changed.
var errSame = errors.New("reflector: nothing has changed since the last list")

// read takes all pages.
func (l *listing[T]) read(ctx context.Context) (err error) {
	c := l.cycle
	if c.opts.Trace != nil && c.opts.Trace.Listed != nil {
		began := time.Now()
		defer func() {
			c.track.to(func(tr *Trace) { tr.Listed(l.pages, l.count, time.Since(began), err) })
		}()
	}
	for {
		page, err := c.page(ctx, l.opts)
		switch {
		case err == nil:
			err = l.add(page)
		case errors.Is(err, ErrNotModified):
			if c.whole { // not any more after a first page
				return errSame
			}
			err = fmt.Errorf("what was listed last did not reach the sink: %w", err)
		}
		if err != nil || page.Next == "" {
			return err
		}
		if err := l.seen.follow(page.Next); err != nil {
			return err
		}
		if err := c.opts.Budget.Wait(ctx); err != nil {
			return err
		}
		l.opts.Page = page.Next
	}
}

// answer is called right before a full state begins.
func (c *cycle[T]) answer() {
	if reason, rang := c.bell.answer(); rang {
		c.track.log.Info("taking a full state", "reason", reason)
	}
}

// page is one call of List.
func (c *cycle[T]) page(ctx context.Context, opts ListOptions) (Page[T], error) {
	c.track.update(func(s *Status) { s.Lists++ })
	returned := c.await(ctx, "List", nil)
	defer returned()
	c.inside = "source List"
	page, err := c.src.List(ctx, opts)
	ask(err)
	if err == nil {
		c.whole = false // until it is committed
		c.track.seen(len(page.Items) > 0)
	}
	return page, err
}

// listing is one list on its way.
type listing[T any] struct {
	cycle       *cycle[T]
	into        *staged[T]
	opts        ListOptions
	seen        tokens
	pages       int
	count       int // of items
	hold        bool
	items       map[string]object.Item[T] // when held back
	faults      map[string]Fault          // the same
	first, last Cursor                    // of the pages: the first's, and the latest
	torn        bool
}

func (l *listing[T]) add(page Page[T]) error {
	c := l.cycle
	l.pages++
	l.count += len(page.Items)
	if l.pages == 1 {
		// Refused early: the rest of an older list is not worth reading.
		reset, err := c.judge(page.Cursor)
		if err != nil {
			return err
		}
		if reset || c.ahead {
			l.into.distrust()
		}
		l.first, l.last = page.Cursor, page.Cursor
		l.hold = l.hold || page.Next != "" && !c.powers.SnapshotPages
		l.hold = l.hold && c.powers.Compare != nil
	} else if err := l.compare(page.Cursor); err != nil {
		return err
	}
	if l.opts.KeysOnly {
		return l.keys(page)
	}
	if !l.hold {
		if err := l.into.keep(page.Faults); err != nil {
			return err
		}
		return l.into.stage(page.Items)
	}
	if err := c.strict(page.Faults); err != nil {
		return err
	}
	if l.items == nil {
		l.items = make(map[string]object.Item[T], len(page.Items))
		l.faults = make(map[string]Fault)
	}
	for _, f := range page.Faults {
		l.faults[f.Key] = f
		delete(l.items, f.Key)
	}
	for _, item := range page.Items {
		l.items[item.Key] = item
		delete(l.faults, item.Key)
	}
	return nil
}

// compare places a later page.
func (l *listing[T]) compare(at Cursor) error {
	c := l.cycle
	switch c.relate(at, l.first) {
	case same:
		l.torn = l.torn || !l.hold && !c.powers.SnapshotPages
	case unknown:
		l.torn = l.torn || at != l.first || !c.powers.SnapshotPages
	case foreign:
		return fmt.Errorf("the list's pages are of different epochs, %q and %q: %w", l.first, at, ErrExpired)
	case earlier:
		// The watch begins at the first page's: what came between is in neither.
		return fmt.Errorf("a page at %q came after one at %q: %w", at, l.first, ErrFutureCursor)
	case later:
		if !l.hold { // pages that were to show one state
			c.buffer = true
			return errAgain
		}
		if c.relate(at, l.last) == later {
			l.last = at
		}
	}
	return nil
}

// release stages what was held back.
func (l *listing[T]) release() error {
	if err := l.into.putAll(l.items); err != nil {
		return err
	}
	return l.into.keep(slices.Collect(maps.Values(l.faults)))
}

func (l *listing[T]) finish() (*held[T], error) {
	l.cycle.track.torn(l.torn)
	if l.hold && l.first != l.last {
		return &held[T]{into: l.into, items: l.items, faults: l.faults, from: l.first, to: l.last}, nil
	}
	if err := l.release(); err != nil {
		return nil, err
	}
	return nil, l.into.commit(l.first)
}

// tokens are the pages that one list was asked for: a page that leads to one of
// them would be followed for ever.
type tokens map[PageToken]struct{}

func (t *tokens) follow(next PageToken) error {
	if _, again := (*t)[next]; again {
		return broken(fmt.Sprintf("page %q comes after itself", next))
	}
	if *t == nil {
		*t = make(tokens)
	}
	(*t)[next] = struct{}{}
	return nil
}
