package backendtest_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

func (m *model) Powers() reflector.Powers[thing] {
	p := reflector.Powers[thing]{
		Paged: m.Paged, SnapshotPages: m.SnapshotPages, Initial: m.Initial, Progress: m.Progress,
		ResumeProven: m.ResumeProven, KeysOnly: m.KeysOnly, StaleLists: m.StaleLists,
	}
	if m.Compare {
		p.Compare = m.compare
	}
	if m.Reached {
		p.Reached = func(c reflector.Cursor, v object.Version) bool {
			at, ok := m.parse(c)
			rev, err := strconv.Atoi(string(v))
			switch m.bad {
			case "Reached too early":
				at++
			case "Reached by text":
				return ok && strconv.Itoa(at) >= string(v)
			}
			return ok && err == nil && at >= rev
		}
	}
	if m.Head {
		p.Head = func(ctx context.Context) (reflector.Cursor, error) {
			if err := m.reach(ctx); err != nil {
				return "", err
			}
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.bad == "Head behind" {
				return m.cursor(max(0, m.rev-1)), nil
			}
			return m.cursor(m.rev), nil
		}
	}
	if m.traits.Get {
		p.Get = m.Get
	}
	return p
}

func (m *model) compare(a, b reflector.Cursor) int {
	x, okx := m.parse(a)
	y, oky := m.parse(b)
	before, _, _ := strings.Cut(string(a), ".")
	if after, _, _ := strings.Cut(string(b), "."); before != after {
		return 0
	}
	switch {
	case !okx || !oky:
		return 0
	case m.bad == "Compare by text":
		return cmp.Compare(a, b)
	}
	return cmp.Compare(x, y)
}

// view is what a read sees.
func (m *model) view() (rev int, items []item) {
	m.mu.Lock()
	defer m.mu.Unlock()
	rev = m.rev
	stale := m.StaleLists || m.bad == "stale list"
	for rev > 0 && (stale && time.Since(m.states[rev].since) < lag || m.states[rev].since.IsZero()) {
		rev--
	}
	return rev, m.states[rev].items
}

func (m *model) List(ctx context.Context, opts reflector.ListOptions) (page reflector.Page[thing], err error) {
	if err := m.reach(ctx); err != nil {
		if m.bad == "error swallowed as an empty list" {
			return page, nil
		}
		return page, err
	}
	if m.bad == "not modified, always" && opts.IfModified {
		return page, reflector.ErrNotModified
	}
	rev, items := m.view()
	if opts.NotBefore != "" && m.bad != "NotBefore ignored" {
		if before, ok := m.parse(opts.NotBefore); !ok || before > rev {
			return page, fmt.Errorf("model: %w", reflector.ErrFutureCursor)
		}
	}
	start := 0
	switch {
	case opts.Page != "" && !m.Paged:
		return page, fmt.Errorf("model: there are no pages: %w", reflector.ErrExpired)
	case opts.Page != "" && m.SnapshotPages:
		rev, start, err = m.token(string(opts.Page))
		if err != nil {
			return page, err
		}
		if m.bad != "pages of different states" {
			m.locked(func() { items = m.states[rev].items })
		}
	case opts.Page != "":
		for start < len(items) && items[start].Key <= string(opts.Page) {
			start++
		}
	}
	page.Cursor = m.listCursor(rev, items)
	items = items[min(start, len(items)):]
	if limit := opts.Limit; m.Paged && limit > 0 && len(items) > limit {
		if m.bad == "Limit ignored" {
			limit++
		}
		items = items[:min(limit, len(items))]
		page.Next = reflector.PageToken(fmt.Sprintf("%d:%d", rev, start+limit))
		if !m.SnapshotPages {
			page.Next = reflector.PageToken(items[len(items)-1].Key)
		}
		if m.bad == "an object on two pages" {
			page.Next = reflector.PageToken(fmt.Sprintf("%d:%d", rev, start+limit-1))
		}
	}
	if m.bad == "partial page taken for whole" && len(items) > 2*chunk {
		items, page.Next = items[:2*chunk], ""
	}
	if m.bad == "page is the store's" {
		page.Items = items
		return page, nil
	}
	for _, it := range items {
		if opts.KeysOnly && m.KeysOnly {
			it.Object = thing{}
			if m.bad == "keys without versions" {
				it.Version = ""
			}
		}
		page.Items = append(page.Items, it)
	}
	return page, nil
}

func (m *model) listCursor(rev int, items []item) reflector.Cursor {
	switch {
	case m.bad == "no cursor of an empty list" && len(items) == 0:
		return ""
	case m.bad == "object version used as cursor":
		rev = 0
		for _, it := range items {
			v, _ := strconv.Atoi(string(it.Version))
			rev = max(rev, v)
		}
	}
	return m.cursor(rev)
}

// token reads a page token of a snapshot.
func (m *model) token(s string) (rev, start int, err error) {
	a, b, _ := strings.Cut(s, ":")
	rev, err = strconv.Atoi(a)
	if err == nil {
		start, err = strconv.Atoi(b)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err != nil && m.bad == "bad token taken":
		return m.rev, 0, nil
	case err != nil:
		return 0, 0, fmt.Errorf("model: page %q: %w", s, err)
	case rev < m.kept && !m.OldPages:
		if m.bad == "compacted pages" {
			return m.rev, start, nil
		}
		return 0, 0, fmt.Errorf("model: page %q: %w", s, reflector.ErrExpired)
	}
	return rev, start, nil
}

func (m *model) Get(ctx context.Context, key string) (item, error) {
	if err := m.reach(ctx); err != nil {
		return item{}, failed("get", key, err)
	}
	_, items := m.view()
	for _, it := range items {
		if it.Key == key || m.bad == "Get by prefix" && strings.HasPrefix(it.Key, key) {
			// Not while others may look at it: then it would be a data race, too.
			if m.bad == "objects changed in place" && m.watches.Load() == 0 && len(it.Object.Finalizers) == 0 {
				it.Object.Tags["read"] = "yes"
			}
			return it, nil
		}
	}
	if m.bad == "Get answers zero" {
		return item{}, nil
	}
	return item{}, failed("get", key, reflector.ErrNotFound)
}

func (m *model) Watch(ctx context.Context, opts reflector.WatchOptions) iter.Seq2[batch, error] {
	begun := new(atomic.Bool)
	return func(yield func(batch, error) bool) {
		w := &watching{model: m, ctx: ctx, opts: opts}
		if begun.Swap(true) && m.bad == "ranges share one session" { // what was told is told
			m.locked(func() { w.opts.After = m.cursor(m.rev) })
		}
		w.yield = w.misbehaving(yield)
		m.watches.Add(1)
		defer m.watches.Add(-1)
		if m.bad == "yields from another goroutine" {
			done := make(chan struct{})
			go func() { defer close(done); w.run() }()
			<-done
			return
		}
		w.run()
	}
}

// watching is one session.
type watching struct {
	*model
	ctx   context.Context
	opts  reflector.WatchOptions
	yield func(batch, error) bool

	at    int // what was told
	live  int // batches
	prev  reflector.Cursor
	cutAt chan struct{}
	deaf  bool
	blind int // deletes at or before this were forgotten when it began, which it can't know
}

func (w *watching) run() {
	w.locked(func() { w.cutAt = w.cut })
	if err := w.reach(w.ctx); err != nil {
		if w.bad == "error swallowed as an empty list" && w.Initial {
			w.yield(batch{Reset: true, Synced: true}, nil)
			return
		}
		if w.ctx.Err() == nil || w.live%2 == 0 {
			w.yield(batch{}, err)
		}
		if w.bad == "goes on after an error" {
			w.yield(batch{Cursor: w.cursor(w.at)}, nil)
		}
		return
	}
	full := w.opts.Initial && w.Initial || w.opts.After == "" && (w.Initial || !w.Cursors)
	switch {
	case full || w.Whole && w.opts.After == "":
		if !w.stream() {
			return
		}
	case w.opts.After == "":
		w.locked(func() { w.at = w.rev })
		if !w.open() {
			return
		}
	default:
		at, err := w.position(w.opts.After)
		if !w.Cursors {
			err = fmt.Errorf("model: there are no positions: %w", reflector.ErrExpired)
		}
		w.locked(func() {
			if !w.ResumeProven { // what is gone is gone
				at, w.blind = max(at, w.kept), w.forgot
			}
		})
		if err != nil {
			w.yield(batch{}, err)
			if w.bad == "goes on after an error" {
				w.yield(batch{Cursor: w.opts.After}, nil)
			}
			return
		}
		w.at = at
		switch w.bad {
		case "gap between list and watch":
			w.locked(func() { w.at = w.rev })
		case "inclusive cursor":
			w.at = max(0, w.at-1)
		case "replay below the cursor":
			w.at = max(0, w.at-3)
		}
		if !w.open() {
			return
		}
	}
	w.follow()
}

// open tells where the watch stands.
func (w *watching) open() bool {
	at := w.cursor(w.at)
	if w.opts.After != "" {
		at = w.opts.After
	}
	w.prev = at
	switch w.bad {
	case "no first batch":
		return true
	case "first batch with events":
		return w.tell(batch{Cursor: at, Events: w.extra()})
	case "backward cursor":
		return w.tell(batch{Cursor: w.cursor(max(0, w.at-1))})
	}
	return w.tell(batch{Cursor: at})
}

// extra is an event that changes nothing.
func (w *watching) extra() []event {
	_, items := w.view()
	if len(items) == 0 {
		return nil
	}
	return []event{{Op: reflector.OpPut, Known: true, Item: items[0]}}
}

func (w *watching) tell(b batch) bool {
	ok := w.yield(b, nil)
	if w.bad == "ignores its context in yield" && ok {
		w.deaf = w.ctx.Err() != nil
		return true
	}
	return ok && w.ctx.Err() == nil
}

// stream tells the whole state.
func (w *watching) stream() bool {
	var items []item
	w.locked(func() { w.at, items = w.rev, w.states[w.rev].items })
	if w.bad == "partial page taken for whole" {
		items = items[:min(len(items), 2*chunk)]
	}
	for first := true; ; first = false {
		n := min(chunk, len(items))
		var b batch
		for _, it := range items[:n] {
			b.Events = append(b.Events, event{Op: reflector.OpPut, Known: true, Item: it})
		}
		items = items[n:]
		b.Reset, b.Synced = first && w.bad != "Synced without Reset", len(items) == 0
		if b.Synced {
			b.Cursor = w.cursor(w.at)
			w.prev = b.Cursor
			b.Synced = w.bad != "Reset without Synced"
		}
		if !w.tell(b) {
			return false
		}
		if len(items) == 0 {
			return true
		}
	}
}

// follow tells what comes, until the session is over.
func (w *watching) follow() {
	var progress <-chan time.Time
	if w.Progress && w.opts.ProgressEvery > 0 && w.bad != "no progress" {
		ticker := time.NewTicker(w.opts.ProgressEvery)
		defer ticker.Stop()
		progress = ticker.C
	}
	for {
		done := w.ctx.Done()
		if w.bad == "context ignored when idle" || w.deaf {
			done = nil
		}
		steps, changed, err := w.after()
		if err != nil {
			w.yield(batch{}, err)
			return
		}
		if w.Short && w.live >= 3 {
			return
		}
		if len(steps) > 0 {
			if !w.tellSteps(steps) {
				return
			}
			continue
		}
		select {
		case <-changed:
			if w.bad == "key order" || w.bad == "reordered events" {
				time.Sleep(time.Millisecond) // for more of them
			}
		case <-progress:
			if !w.tell(batch{Cursor: w.cursor(w.at)}) {
				return
			}
		case <-w.cutAt:
			if w.bad == "silent close" {
				<-w.ctx.Done()
			}
			if w.ErrorCut && w.ctx.Err() == nil {
				w.yield(batch{}, errors.New("model: connection reset"))
			}
			return
		case <-w.release:
			return
		case <-done:
			return
		}
	}
}

// after is what was not told yet.
func (w *watching) after() ([]logged, <-chan struct{}, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	compacted := w.at < w.kept && w.bad != "compaction unnoticed"
	if purged := w.at < w.forgot && w.forgot > w.blind && w.bad != "delete lost after a purge"; compacted || purged {
		return nil, nil, fmt.Errorf("model: after %d: %w", w.at, reflector.ErrExpired)
	}
	last := map[string]int{}
	for _, l := range w.log {
		for _, e := range l.events {
			last[e.Key] = l.rev
		}
	}
	var steps []logged
	for _, l := range w.log {
		if l.rev <= w.at {
			continue
		}
		if w.Latest {
			var left []event
			for _, e := range l.events {
				if last[e.Key] == l.rev {
					left = append(left, e)
				}
			}
			l.events = left
		}
		if len(l.events) > 0 {
			steps = append(steps, l)
		}
	}
	if w.bad == "resumes only so far" && len(steps) > 4 { // LIMIT, without a loop
		steps = steps[:1]
		steps[0].rev = w.rev
	}
	return steps, w.changed, nil
}

// tellSteps tells some steps, in the model's way.
func (w *watching) tellSteps(steps []logged) bool {
	w.live++
	if w.Whole {
		return w.stream()
	}
	n := 1
	if w.Merge {
		n = len(steps)
	}
	b := batch{Cursor: w.cursor(steps[n-1].rev)}
	for _, l := range steps[:n] {
		b.Events = append(b.Events, l.events...)
	}
	if w.Prev {
		b.Prev = w.prev
	}
	w.at, w.prev = steps[n-1].rev, b.Cursor
	return w.tellBadly(b, steps)
}
