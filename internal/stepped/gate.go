package stepped

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/homeostat/homeostat/reflector"
)

// gate is the source of one client: the store, where each call stands still until
// the scheduler lets it go on, and with the powers that the client's kind leaves.
//
// Its methods run on the client's goroutines, one at a time for each line; the
// scheduler looks at the client only while all of them stand.
type gate struct{ *client }

func (g gate) Powers() reflector.Powers[Thing] {
	p := g.w.store.Powers()
	q := reflector.Powers[Thing]{
		Paged:         g.kind.feed == "list",
		SnapshotPages: g.kind.feed == "list" && !g.kind.has("torn"),
		Initial:       g.kind.feed == "stream" || g.kind.feed == "blind",
		Progress:      g.kind.has("progress"),
		ResumeProven:  g.kind.has("resume"),
		KeysOnly:      g.kind.has("keys"),
	}
	if g.kind.positions() && g.kind.has("order") {
		q.Compare, q.Reached = p.Compare, p.Reached
	}
	if g.kind.positions() {
		q.Head = p.Head
	}
	if g.kind.feed == "hint" {
		q.Get = g.get
	}
	return q
}

func (g gate) List(ctx context.Context, opts reflector.ListOptions) (reflector.Page[Thing], error) {
	none := reflector.Page[Thing]{}
	v := g.src.stand(ctx, &call{what: askList, list: opts})
	if v.err != nil {
		return none, v.err
	}
	c := &call{what: gotPage, list: opts, fresh: true}
	switch {
	case v.page != nil: // an old one, the model's own
		c.page, c.fresh = *v.page, false
	case g.kind.has("torn"):
		c.page, c.err = g.w.store.List(ctx, reflector.ListOptions{})
	default:
		c.page, c.err = g.w.store.List(ctx, opts)
	}
	v = g.src.stand(ctx, c)
	switch {
	case v.err != nil:
		return none, v.err
	case c.err != nil:
		return none, c.err
	}
	page := c.page
	page.Items = slices.Clone(page.Items)
	if g.kind.has("torn") && v.page == nil && page.Next == "" {
		page = tear(page, opts)
	}
	if v.do == "short" {
		page.Items = page.Items[:len(page.Items)-1]
	}
	for i := range page.Items {
		page.Items[i] = g.strip(page.Items[i])
	}
	g.listed(opts, page)
	if !g.kind.positions() {
		page.Cursor = ""
	}
	return page, nil
}

// tear makes the page of a list whose pages are each of their own time.
func tear(p reflector.Page[Thing], opts reflector.ListOptions) reflector.Page[Thing] {
	from, _ := slices.BinarySearchFunc(p.Items, string(opts.Page), func(it item, after string) int {
		if it.Key > after {
			return 1
		}
		return -1
	})
	p.Items = p.Items[from:]
	if n := opts.Limit; n > 0 && len(p.Items) > n {
		p.Items = p.Items[:n]
		p.Next = reflector.PageToken(p.Items[n-1].Key)
	}
	return p
}

// strip takes away what this kind of source does not tell.
func (g gate) strip(it item) item {
	if !g.kind.has("ids") {
		it.ID = ""
	}
	return it
}

func (g gate) get(ctx context.Context, key string) (item, error) {
	v := g.src.stand(ctx, &call{what: askGet, key: key})
	if v.err != nil {
		return item{}, v.err
	}
	c := &call{what: gotItem, key: key, fresh: true}
	c.item, c.err = g.w.store.Get(ctx, key)
	if v = g.src.stand(ctx, c); v.err != nil {
		return item{}, v.err
	}
	g.mixed = true // of what was listed, and of what is fetched now
	return g.strip(c.item), c.err
}

// hints tells the keys of all changes, and none of those that are dropped.
func (g gate) hints(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if v := g.hnt.stand(ctx, &call{what: askHints}); v.err != nil {
			yield("", v.err)
			return
		}
		after := g.w.model.now().at
		for b, err := range g.w.store.Watch(ctx, reflector.WatchOptions{After: after}) {
			c := &call{what: gotHint, err: err}
			if len(b.Events) > 0 {
				c.key = b.Events[0].Key
			}
			v := g.hnt.stand(ctx, c)
			switch err := cmp.Or(v.err, err); {
			case err != nil:
				yield("", err)
				return
			case v.do == "mute":
			case !yield(c.key, nil):
				return
			}
		}
	}
}

func (g gate) Watch(ctx context.Context, opts reflector.WatchOptions) iter.Seq2[reflector.Batch[Thing], error] {
	return func(yield func(reflector.Batch[Thing], error) bool) {
		if v := g.src.stand(ctx, &call{what: askWatch, watch: opts, fresh: true}); v.err != nil {
			yield(reflector.Batch[Thing]{}, v.err)
			return
		}
		if g.kind.feed == "blind" {
			opts.After, opts.Initial = "", true
		}
		if !g.kind.has("progress") {
			opts.ProgressEvery = 0
		}
		s := &session{gate: g, ctx: ctx, yield: yield}
		idle, hangUp := context.WithCancel(ctx)
		g.hangUp = hangUp
		defer func() {
			hangUp()
			g.hangUp = nil
		}()
		for b, err := range g.w.store.Watch(idle, opts) {
			if err != nil {
				s.fail(err)
				return
			}
			if !s.take(b) {
				return
			}
		}
	}
}

// keyAt is the number of a key.
func (w *world) keyAt(key string) int { return slices.Index(w.keys, key) }
