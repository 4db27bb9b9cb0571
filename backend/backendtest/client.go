package backendtest

import (
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// client is a consumer that keeps a state as a reflector would, but forgives
// nothing. Its methods answer errors and may be used on any goroutine, by one at a
// time.
type client[T any] struct {
	st    *store[T]
	s     *session[T] // nil when no watch is open
	state map[string]object.Item[T]
	stage map[string]object.Item[T] // not nil within a full state
	at    reflector.Cursor
	whole bool // state is a full state, and at its cursor

	// exact: each state must be one of the store's history. known is which one; where
	// a log keeps only the last change of each key and states come back, it may be an
	// earlier one that looks the same.
	exact bool
	known int
	saved map[string]object.Item[T] // when exact, the state at the cursor
	// places are all cursors told so far, with the state that belongs to each.
	places []place

	opened  bool // the session has told something
	relist  bool // take a new full state when the source wants that, else it is an error
	patient bool // try again after errors, until the time is over
	every   int  // end each session after so many batches with a cursor; 0 never
	taken   int  // batches of the session that moved something
	tries   int  // sessions in a row that ended where one had ended before
	been    map[reflector.Cursor]bool
	onBatch func(reflector.Batch[T]) error
	truth   *atomic.Pointer[map[string]T] // what the store is to be, when not as the history says
}

// place is a cursor and which state of the history lies there.
type place struct {
	at    reflector.Cursor
	known int
}

// here notes where the client stands.
func (c *client[T]) here() {
	if c.at != "" && c.exact {
		c.places = append(c.places, place{c.at, c.known})
		c.saved = maps.Clone(c.state)
	}
}

// errLate: what had to come did not.
var errLate = errors.New("did not come")

// follow takes what is told until done, which must be within Harness.Wait.
func (c *client[T]) follow(what string, done func() bool) error {
	return c.run(what, done, nil)
}

// run is follow that ends, well, when stop is closed, and has no other deadline.
func (c *client[T]) run(what string, done func() bool, stop <-chan struct{}) error {
	end := time.Now().Add(c.st.k.h.Wait)
	var last error
	for !done() {
		left := time.Until(end)
		if stop != nil {
			left = time.Hour
		}
		if c.s == nil {
			if err := c.open(end, stop); err != nil {
				return err
			}
		}
		e, ok := c.s.next(left, stop)
		if err := c.st.k.ctx.Err(); err != nil {
			return errors.Join(err, last)
		}
		if !ok && stop != nil {
			return nil
		}
		if !ok {
			return errors.Join(fmt.Errorf("%s %w within %v%s", what, errLate, c.st.k.h.Wait, c.short()), last)
		}
		if err := c.take(e); err != nil {
			if !c.patient || time.Now().After(end) {
				return err
			}
			last = err
		}
	}
	return nil
}

// short says what the client's state lacks.
func (c *client[T]) short() string {
	want := c.st.hist.now()
	if c.truth != nil {
		want = *c.truth.Load()
	}
	if diff := c.st.hist.differs(c.state, want); diff != "" && c.opened {
		return ": " + diff
	}
	return ""
}

// seen takes what was told already, and waits for nothing.
func (c *client[T]) seen() error {
	for c.s != nil {
		e, ok := c.s.pending()
		if !ok {
			return nil
		}
		if err := c.take(e); err != nil && !c.patient {
			return err
		}
	}
	return nil
}

// open opens a watch where the client stands, after a list if it has no full state.
func (c *client[T]) open(end time.Time, stop <-chan struct{}) error {
	if err := c.pause(stop); err != nil {
		return err
	}
	for !c.whole {
		l, err := c.st.list(c.st.k.ctx, reflector.ListOptions{})
		if err == nil {
			c.state, c.at, c.whole = l.items, l.at, true
			break
		}
		if !c.patient || time.Now().After(end) || errors.Is(err, errStuck) || errors.Is(err, errPanic) {
			return err
		}
		if c.tries++; c.pause(stop) != nil {
			return err
		}
	}
	if c.exact && len(c.places) > 0 && c.at != "" { // what was told without a place is told again
		c.known = c.places[len(c.places)-1].known
		c.state = maps.Clone(c.saved)
	}
	c.stage, c.opened, c.taken = nil, false, 0
	c.s = c.st.watch(reflector.WatchOptions{After: c.at}, nil)
	return nil
}

// pause keeps sessions that end at once from following each other for ever, in no
// time.
func (c *client[T]) pause(stop <-chan struct{}) error {
	if c.tries == 0 {
		return nil
	}
	select {
	case <-time.After(min(time.Duration(c.tries)*time.Millisecond, 50*time.Millisecond)):
	case <-stop:
	case <-c.st.k.ctx.Done():
	}
	return c.st.k.ctx.Err()
}

// moved says that the session came to where none was before, or not.
func (c *client[T]) moved() {
	c.tries++
	if !c.been[c.at] && c.taken > 0 {
		c.tries = 1
	}
	if c.been == nil {
		c.been = map[reflector.Cursor]bool{}
	}
	c.been[c.at] = true
}

// close ends the session, if there is one.
func (c *client[T]) close() error {
	if c.s == nil {
		return nil
	}
	err := c.s.stop()
	c.s = nil
	return err
}

// take does what was told; its error says what was wrong with it.
func (c *client[T]) take(e event[T]) error {
	switch {
	case e.over:
		if err := c.close(); err != nil {
			return err
		}
		c.moved()
		return nil
	case e.err != nil:
		moot := errors.Is(e.err, reflector.ErrExpired) || errors.Is(e.err, reflector.ErrFutureCursor)
		if moot && c.relist {
			c.whole, c.at, c.known = false, "", 0
			c.tries++
			return nil
		}
		return fmt.Errorf("the watch from %q ended with an error: %w", c.s.opts.After, e.err)
	}
	c.opened = true
	if err := c.batch(e.batch); err != nil {
		return err
	}
	if c.onBatch != nil {
		if err := c.onBatch(e.batch); err != nil {
			return err
		}
	}
	if c.stage == nil && e.batch.Cursor != c.s.opts.After || e.batch.Synced {
		if c.taken++; c.every > 0 && c.taken >= c.every {
			c.moved()
			return c.close()
		}
	}
	return nil
}

func (c *client[T]) batch(b reflector.Batch[T]) error {
	if b.Reset {
		c.stage = map[string]object.Item[T]{}
	}
	if c.stage != nil {
		apply(c.stage, b.Events)
		if !b.Synced {
			return nil
		}
		c.state, c.stage, c.at, c.whole = c.stage, nil, b.Cursor, true
		return c.fullState()
	}
	if len(b.Events) > 0 {
		if err := c.changes(b); err != nil {
			return err
		}
	}
	if b.Cursor != "" {
		c.at = b.Cursor
		c.here()
	}
	return nil
}

// fullState places what was streamed in the history.
func (c *client[T]) fullState() error {
	if !c.exact {
		return nil
	}
	h := c.st.hist
	i := h.find(c.state, c.known)
	if i < 0 {
		return fmt.Errorf("a full state at %q is none that the store had after step %d; from the last one it differs by: %s",
			c.at, c.known, h.differs(c.state, h.now()))
	}
	c.known = i
	c.here()
	return nil
}

// changes applies a live batch and places what comes of it in the history.
func (c *client[T]) changes(b reflector.Batch[T]) error {
	if !c.exact {
		apply(c.state, b.Events)
		return nil
	}
	h := c.st.hist
	was := maps.Clone(c.state)
	for _, e := range b.Events {
		before, there := c.state[e.Key]
		again := e.Op == reflector.OpPut && there && h.equal(before.Object, e.Object)
		if again || e.Op == reflector.OpDelete && !there && !h.touched(e.Key, c.known) {
			return fmt.Errorf("after %q, at %q: %s is told, which lies at or before that cursor", c.at, b.Cursor, verb(e))
		}
		apply(c.state, []reflector.Event[T]{e})
	}
	i := h.follows(c.state, was, c.known+1)
	if i < 0 {
		return fmt.Errorf("after %q, at %q: %s is told, and leads to no state that the store had; what comes next there is: %s",
			c.at, b.Cursor, verbs(b.Events), h.next(c.known))
	}
	c.known = i
	return nil
}

// current says that the client shows the present state of the history.
func (c *client[T]) current() bool {
	return c.whole && c.stage == nil && c.st.hist.differs(c.state, c.st.hist.now()) == ""
}

func apply[T any](state map[string]object.Item[T], events []reflector.Event[T]) {
	for _, e := range events {
		if e.Op == reflector.OpDelete {
			delete(state, e.Key)
		} else {
			state[e.Key] = e.Item
		}
	}
}

// items is a state of the history as items; versions and IDs are from like.
func items[T any](objects map[string]T, like map[string]object.Item[T]) map[string]object.Item[T] {
	all := make(map[string]object.Item[T], len(objects))
	for key, obj := range objects {
		item := like[key]
		item.Key, item.Object = key, obj
		all[key] = item
	}
	return all
}

func verb[T any](e reflector.Event[T]) string {
	if e.Op == reflector.OpDelete {
		return "delete " + e.Key
	}
	return "put " + e.Key
}

func verbs[T any](events []reflector.Event[T]) string {
	var all []string
	for _, e := range events {
		all = append(all, verb(e))
	}
	return named(all)
}
