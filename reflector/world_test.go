package reflector_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// world is a small source with everything that can go wrong with one: history
// that is compacted, epochs, restores, replicas that lag, pages of different
// states, cuts, silence, replays, errors and panics. What may go wrong is drawn
// from rng while stormy.
type world struct {
	rng       *rand.Rand // under mu
	powers    powers
	positions bool

	mu        sync.Mutex
	stormy    bool
	down      bool // nobody can be reached
	epoch     int
	rev       int
	oldest    int // history after it is there
	state     map[string]item
	changes   []change
	snapshots map[int]map[string]item // of this epoch, by revision
	known     map[cursor]string       // every state there ever was
	texts     map[string]bool         // the same, for sources without positions
	tokens    map[reflector.PageToken]listed
	changed   chan struct{} // closed at each change
	watchers  map[*watcher]bool
}

type change struct {
	rev  int
	key  string
	item item
	gone bool
}

// listed is the rest of a list: all of one state, or from a key on.
type listed struct {
	epoch int
	rest  []item
	at    cursor
	from  string
}

type watcher struct {
	end    chan error // nil ends it plainly
	silent bool
}

var keys = []string{"a", "b", "c", "d", "e", "f", "g", "h"}

func newWorld(rng *rand.Rand) *world {
	w := &world{rng: rng, stormy: true, positions: rng.IntN(5) > 0, epoch: 1, rev: 5, oldest: 5, state: map[string]item{},
		snapshots: map[int]map[string]item{}, known: map[cursor]string{}, texts: map[string]bool{},
		tokens: map[reflector.PageToken]listed{}, changed: make(chan struct{}), watchers: map[*watcher]bool{}}
	yes := func() bool { return rng.IntN(2) == 0 }
	w.powers.Progress = yes()
	w.powers.Paged = yes()
	w.powers.SnapshotPages = yes()
	w.powers.Initial = yes() || !w.positions
	if w.positions {
		w.powers.ResumeProven = rng.IntN(3) > 0
		if rng.IntN(3) > 0 {
			w.powers.Compare = compare
		}
	}
	for range rng.IntN(6) {
		w.write()
	}
	w.note()
	return w
}

func (w *world) Powers() powers { return w.powers }

func (w *world) at(rev int) cursor { return cursor(fmt.Sprintf("e%d/%d", w.epoch, rev)) }

func canon(state map[string]item) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(state)) {
		fmt.Fprintf(&b, "%s=%s ", k, state[k].Object)
	}
	return b.String()
}

// note keeps the present state.
func (w *world) note() {
	w.snapshots[w.rev] = maps.Clone(w.state)
	text := canon(w.state)
	w.known[w.at(w.rev)], w.texts[text] = text, true
	close(w.changed)
	w.changed = make(chan struct{})
}

// write changes one to three keys in one revision.
func (w *world) write() {
	w.rev++
	for _, i := range w.rng.Perm(len(keys))[:1+w.rng.IntN(3)] {
		key := keys[i]
		c := change{rev: w.rev, key: key}
		if _, ok := w.state[key]; ok && w.rng.IntN(3) == 0 {
			c.gone = true
			delete(w.state, key)
		} else {
			v := fmt.Sprintf("%d%06d", w.epoch, w.rev)
			c.item = item{Key: key, Version: object.Version(v), Object: v}
			w.state[key] = c.item
		}
		w.changes = append(w.changes, c)
	}
	w.note()
}

func (w *world) compact() { w.oldest = w.rev - w.rng.IntN(3) }

// restore sets the world back to an older state, as another epoch or in place.
func (w *world) restore(inPlace bool) {
	revs := slices.Sorted(maps.Keys(w.snapshots))
	rev := revs[w.rng.IntN(len(revs))]
	w.state = maps.Clone(w.snapshots[rev])
	if inPlace {
		w.changes = slices.DeleteFunc(w.changes, func(c change) bool { return c.rev > rev })
		w.oldest = min(w.oldest, rev)
	} else {
		w.epoch++
		w.changes, w.snapshots = nil, map[int]map[string]item{}
		rev = max(1, rev+w.rng.IntN(9)-4)
		w.oldest = rev
	}
	w.rev = rev
	w.note()
	for _, x := range w.ordered() {
		switch w.rng.IntN(3) {
		case 0:
			x.stop(reflector.ErrExpired)
		case 1:
			x.stop(nil)
		default:
			x.silent = true
		}
	}
}

// ordered gives the watchers in a fixed order; there is never more than one
// that is not about to end.
func (w *world) ordered() []*watcher { return slices.Collect(maps.Keys(w.watchers)) }

func (x *watcher) stop(err error) {
	select {
	case x.end <- err:
	default:
	}
}

// odds: a fault happens once in n.
func (w *world) odds(n int) bool { return w.stormy && w.rng.IntN(n) == 0 }

func (w *world) failure() error {
	switch {
	case w.down:
		return errors.New("unreachable")
	case w.odds(12):
		return errBoom
	case w.odds(40):
		panic("kaboom")
	}
	return nil
}

func (w *world) List(ctx context.Context, o reflector.ListOptions) (page, error) {
	w.mu.Lock()
	wait := time.Duration(0)
	if w.odds(4) {
		wait = time.Duration(w.rng.IntN(4000)) * time.Millisecond
	}
	w.mu.Unlock()
	nap(ctx, wait)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.failure(); err != nil {
		return page{}, err
	}
	if o.Page == "" && w.odds(30) {
		return page{}, reflector.ErrExpired
	}
	state, rev, from := w.state, w.rev, ""
	var rest []item
	l, ok := w.tokens[o.Page]
	delete(w.tokens, o.Page)
	switch {
	case o.Page != "" && (!ok || l.epoch != w.epoch || w.odds(8)):
		return page{}, reflector.ErrExpired
	case o.Page != "":
		from = l.from
	case w.powers.Compare != nil && w.odds(6): // from a replica that lags
		revs := slices.Sorted(maps.Keys(w.snapshots))
		rev = revs[w.rng.IntN(len(revs))]
		state = w.snapshots[rev]
	}
	p := page{Cursor: w.at(rev)}
	if o.Page != "" && w.powers.SnapshotPages {
		rest, p.Cursor = l.rest, l.at
	} else {
		for _, k := range slices.Sorted(maps.Keys(state)) {
			if k >= from {
				rest = append(rest, state[k])
			}
		}
	}
	if n := o.Limit; w.powers.Paged && n > 0 && len(rest) > n {
		p.Next = reflector.PageToken(fmt.Sprint("t", w.rng.Uint64()))
		w.tokens[p.Next] = listed{epoch: w.epoch, rest: rest[n:], at: p.Cursor, from: rest[n].Key}
		rest = rest[:n]
	}
	p.Items = slices.Clone(rest)
	if !w.positions {
		p.Cursor = ""
	}
	return p, nil
}

func (w *world) Watch(ctx context.Context, o reflector.WatchOptions) iter.Seq2[batch, error] {
	return func(yield func(batch, error) bool) {
		x := &watcher{end: make(chan error, 1)}
		defer func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			delete(w.watchers, x)
		}()
		hang, err := w.enter(x)
		switch {
		case err != nil:
			yield(batch{}, err)
			return
		case hang:
			<-ctx.Done()
			return
		}
		epoch, rev, ok := w.open(ctx, o, yield)
		if ok {
			w.follow(ctx, o, x, epoch, rev, yield)
		}
	}
}

// enter registers a watcher, if the weather lets it in.
func (w *world) enter(x *watcher) (hang bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watchers[x] = true
	return w.odds(25), w.failure()
}

// open gives where the watch begins, after what it has to say before.
func (w *world) open(ctx context.Context, o reflector.WatchOptions, yield yield) (epoch, rev int, ok bool) {
	w.mu.Lock()
	if !o.Initial && w.positions {
		defer w.mu.Unlock()
		e, r, _ := strings.Cut(string(o.After), "/")
		rev, _ = strconv.Atoi(r)
		var err error
		switch {
		case e != fmt.Sprint("e", w.epoch) || rev < w.oldest:
			err = reflector.ErrExpired
		case rev > w.rev:
			err = reflector.ErrFutureCursor
		}
		if err != nil {
			yield(batch{}, err)
			return 0, 0, false
		}
		return w.epoch, rev, yield(batch{Cursor: o.After}, nil)
	}
	// A full state in pieces, in no order, with what changes meanwhile.
	epoch, rev = w.epoch, w.rev
	var es []event
	for _, i := range w.rng.Perm(len(keys)) {
		if it, ok := w.state[keys[i]]; ok {
			es = append(es, event{Op: reflector.OpPut, Known: true, Item: it})
		}
	}
	stuck := w.odds(12)
	pieces := 1 + w.rng.IntN(3)
	w.mu.Unlock()
	b := batch{Reset: true}
	for i := range pieces {
		n := len(es)
		if i < pieces-1 {
			n = len(es) / 2
		}
		b.Events, es = es[:n], es[n:]
		if i == pieces-1 {
			break
		}
		if !yield(b, nil) {
			return 0, 0, false
		}
		b = batch{}
		if stuck {
			<-ctx.Done()
			return 0, 0, false
		}
		nap(ctx, time.Second)
	}
	w.mu.Lock()
	if w.epoch != epoch || w.rev < rev || w.oldest > rev {
		w.mu.Unlock()
		return 0, 0, false // ends in the middle
	}
	for _, c := range w.changes {
		if c.rev > rev {
			b.Events = append(b.Events, c.event())
		}
	}
	rev = w.rev
	if w.positions {
		b.Cursor = w.at(rev)
	}
	w.mu.Unlock()
	b.Synced = true
	return epoch, rev, yield(b, nil)
}

func (c change) event() event {
	if c.gone {
		return event{Op: reflector.OpDelete, Item: item{Key: c.key}}
	}
	return event{Op: reflector.OpPut, Known: true, Item: c.item}
}

// follow yields what changes after rev.
func (w *world) follow(ctx context.Context, o reflector.WatchOptions, x *watcher, epoch, rev int, yield yield) {
	var tick <-chan time.Time
	if o.ProgressEvery > 0 && w.powers.Progress {
		t := time.NewTicker(o.ProgressEvery)
		defer t.Stop()
		tick = t.C
	}
	for {
		w.mu.Lock()
		changed, silent := w.changed, x.silent
		var bs []batch
		var err error
		switch {
		case silent:
		case w.epoch != epoch || w.rev < rev:
			err = reflector.ErrExpired
		case rev < w.oldest:
			err = fmt.Errorf("compacted: %w", reflector.ErrExpired)
		default:
			bs, rev = w.batches(rev)
		}
		w.mu.Unlock()
		if err != nil {
			yield(batch{}, err)
			return
		}
		for _, b := range bs {
			if !yield(b, nil) {
				return
			}
		}
		if silent {
			<-ctx.Done()
			return
		}
		select {
		case <-ctx.Done():
			return
		case err := <-x.end:
			if err != nil {
				yield(batch{}, err)
			}
			return
		case <-tick:
			b := batch{}
			if w.positions {
				w.mu.Lock()
				if w.epoch == epoch && w.rev == rev && w.rng.IntN(2) == 0 {
					b.Cursor = w.at(rev)
				}
				w.mu.Unlock()
			}
			w.mu.Lock()
			silent := x.silent
			w.mu.Unlock()
			if !silent && !yield(b, nil) {
				return
			}
		case <-changed:
		}
	}
}

// batches gives what changed after rev, one or more revisions a batch.
func (w *world) batches(rev int) ([]batch, int) {
	var out []batch
	if w.odds(10) { // the last one once more, as an inclusive start gives it
		if b := w.between(rev-1, rev); len(b.Events) > 0 && w.positions {
			out = append(out, b)
		}
	}
	for rev < w.rev {
		to := min(w.rev, rev+1+w.rng.IntN(2))
		b := w.between(rev, to)
		if w.odds(10) {
			b.Cursor = "" // a source that tells positions now and then only
		}
		out = append(out, b)
		rev = to
	}
	return out, rev
}

func (w *world) between(rev, to int) batch {
	var b batch
	for _, c := range w.changes {
		if c.rev > rev && c.rev <= to {
			b.Events = append(b.Events, c.event())
		}
	}
	if w.positions {
		b.Cursor = w.at(to)
	}
	return b
}
