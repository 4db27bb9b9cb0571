package backendtest_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/homeostat/homeostat/backend/backendtest"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

type (
	item  = object.Item[thing]
	batch = reflector.Batch[thing]
	event = reflector.Event[thing]
)

// traits are what a model has and how it goes about it. All of them are within the
// rules.
type traits struct {
	// Powers.
	Paged, SnapshotPages, Initial, Progress, ResumeProven, KeysOnly, StaleLists bool
	Compare, Reached, Head, Get                                                 bool
	// What else may be there or not.
	Cursors, Versions, IDs, Prev, Known, Transactions, Writes, DryRun, Patch bool
	// The harness.
	Restart, Compact, Forget, Cut, Down, Spoil bool

	// Whole: every batch is a full state. Merge: what is pending is one batch.
	// Latest: the log keeps only the last change of each key. Short: sessions end
	// after a few batches. Durable: a restart keeps everything. Hang: what is down
	// does not answer. Fails: what can't be decoded fails the list and ends the watch. ErrorCut: a cut session ends in an error. OldPages: pages of a
	// compacted state are still to be had.
	Whole, Merge, Latest, Short, Durable, Hang, Fails, ErrorCut, OldPages bool
}

// everything is a model with all powers.
func everything() traits {
	return traits{
		Paged: true, SnapshotPages: true, Initial: true, Progress: true, ResumeProven: true, KeysOnly: true,
		Compare: true, Reached: true, Head: true, Get: true,
		Cursors: true, Versions: true, IDs: true, Prev: true, Known: true, Transactions: true, Writes: true, DryRun: true, Patch: true,
		Restart: true, Compact: true, Forget: true, Cut: true, Down: true, Spoil: true,
	}
}

// sane takes away what can't be without something else.
func (t traits) sane() traits {
	if !t.Cursors {
		t.Compare, t.Reached, t.Head, t.ResumeProven, t.Prev = false, false, false, false, false
	}
	t.Reached = t.Reached && t.Versions
	return t
}

// lag is how old a stale read is.
const lag = 20 * time.Millisecond

// chunk is how many objects a streamed batch has.
const chunk = 20

// model is a store that is as simple as can be, with anything left out of it, or
// with something wrong with it.
type model struct {
	traits
	bad string // what is wrong; "" is nothing

	mu      sync.Mutex
	epoch   string
	rev     int
	log     []logged
	kept    int // what is at or before this is compacted
	forgot  int // deletes at or before this are forgotten
	objects map[string]item
	states  []state // by revision
	changed chan struct{}
	cut     chan struct{}
	up      chan struct{} // not nil while it is down
	watches atomic.Int32
	release chan struct{} // closed when the test is over, for what would hang for ever
}

type logged struct {
	rev    int
	events []event
}

// state is what the store was after a revision, and since when.
type state struct {
	items []item // by key
	since time.Time
}

func newModel(t traits, bad, epoch string) *model {
	m := &model{
		traits: t.sane(), bad: bad, epoch: epoch, objects: map[string]item{},
		changed: make(chan struct{}), cut: make(chan struct{}), release: make(chan struct{}),
	}
	m.states = []state{{since: time.Now().Add(-time.Hour)}}
	return m
}

func (m *model) locked(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

// commit makes changes one step.
func (m *model) commit(changes ...backendtest.Change[thing]) {
	if m.bad == "commits out of order" {
		m.commitLate(changes)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rev++
	if events := m.applyLocked(m.rev, changes); len(events) > 0 {
		m.addLocked(logged{m.rev, events})
	} else {
		m.rev--
	}
}

// commitLate takes a number first and commits under it later.
func (m *model) commitLate(changes []backendtest.Change[thing]) {
	var rev int
	m.locked(func() { m.rev++; rev = m.rev })
	time.Sleep(time.Duration(rev*7%5) * time.Millisecond)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.addLocked(logged{rev, m.applyLocked(rev, changes)})
	slices.SortFunc(m.log, func(a, b logged) int { return cmp.Compare(a.rev, b.rev) })
}

func (m *model) applyLocked(rev int, changes []backendtest.Change[thing]) []event {
	var events []event
	for _, c := range changes {
		cur, there := m.objects[c.Key]
		switch {
		case c.Delete && !there:
		case c.Delete:
			delete(m.objects, c.Key)
			cur.Version = m.version(rev)
			e := event{Op: reflector.OpDelete, Known: m.Known, Item: cur}
			if !m.Known {
				e.Object = thing{}
			}
			events = append(events, e)
		default:
			id := m.id(c.Key, rev)
			if there {
				id = cur.ID
			}
			it := item{Key: c.Key, Version: m.version(rev), ID: id, Object: c.Object}
			if m.bad == "version kept on a change" && there {
				it.Version = cur.Version
			}
			m.objects[c.Key] = it
			events = append(events, event{Op: reflector.OpPut, Known: m.bad != "put of nothing known", Item: it})
		}
	}
	return events
}

// addLocked makes a step known.
func (m *model) addLocked(l logged) {
	m.log = append(m.log, l)
	for len(m.states) <= m.rev {
		m.states = append(m.states, state{})
	}
	items := slices.Collect(maps.Values(m.objects))
	slices.SortFunc(items, func(a, b item) int { return cmp.Compare(a.Key, b.Key) })
	m.states[l.rev] = state{items, time.Now()}
	if m.rev > l.rev { // a later one came first: it has this, too
		m.states[m.rev] = state{items, time.Now()}
	}
	close(m.changed)
	m.changed = make(chan struct{})
}

func (m *model) version(rev int) object.Version {
	if !m.Versions {
		return ""
	}
	return object.Version(strconv.Itoa(rev))
}

func (m *model) id(key string, rev int) string {
	switch {
	case !m.IDs:
		return ""
	case m.bad == "ID kept on re-creation":
		return "id-of-" + key
	}
	return m.epoch + "#" + strconv.Itoa(rev)
}

func (m *model) cursor(rev int) reflector.Cursor {
	if !m.Cursors {
		return ""
	}
	return reflector.Cursor(m.epoch + "." + strconv.Itoa(rev))
}

// parse reads a cursor of this epoch.
func (m *model) parse(c reflector.Cursor) (int, bool) {
	epoch, digits, _ := strings.Cut(string(c), ".")
	if m.bad == "future cursor accepted" && digits == "" {
		epoch, digits = m.epoch, string(c)
	}
	rev, err := strconv.Atoi(digits)
	if m.bad == "future cursor accepted" && errors.Is(err, strconv.ErrRange) {
		rev, err = 1<<30, nil
	}
	return rev, err == nil && (epoch == m.epoch || m.bad == "foreign cursor accepted")
}

// position is where a cursor lies, or why nothing can begin there.
func (m *model) position(c reflector.Cursor) (int, error) {
	rev, ok := m.parse(c)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case !ok:
		return 0, fmt.Errorf("model: %q: %w", c, reflector.ErrExpired)
	case rev > m.rev && m.bad == "future cursor accepted", rev > m.rev && m.bad == "foreign cursor accepted":
		return rev, nil
	case rev > m.rev:
		return 0, fmt.Errorf("model: %q: %w", c, reflector.ErrFutureCursor)
	}
	return rev, m.reachesLocked(rev)
}

// reachesLocked says why nothing can be told that came after rev.
func (m *model) reachesLocked(rev int) error {
	switch {
	case !m.ResumeProven:
	case rev < m.kept && m.bad != "compaction unnoticed", rev < m.forgot && m.bad != "delete lost after a purge":
		return fmt.Errorf("model: after %d: %w", rev, reflector.ErrExpired)
	}
	return nil
}

// reach is the way to the store: none while it is down.
func (m *model) reach(ctx context.Context) error {
	var up chan struct{}
	m.locked(func() { up = m.up })
	switch {
	case up == nil:
		return ctx.Err()
	case !m.Hang:
		return errors.New("model: connection refused")
	}
	done := ctx.Done()
	if m.bad == "List ignores its context" {
		done = nil
	}
	select {
	case <-up:
		return nil
	case <-done:
		return ctx.Err()
	case <-m.release:
		return ctx.Err()
	}
}

// fixture is the harness of a model.
func (m *model) fixture() *backendtest.Fixture[thing] {
	fx := &backendtest.Fixture[thing]{
		Source: m.source(),
		Write: func(_ context.Context, changes ...backendtest.Change[thing]) error {
			if len(changes) > 1 && !m.Transactions {
				return errors.ErrUnsupported
			}
			m.commit(changes...)
			return nil
		},
		Close: func() error { return nil },
	}
	if m.Restart {
		fx.Restart = func(context.Context) (reflector.ListWatcher[thing], error) {
			m.endAll()
			next := m
			if !m.Durable {
				epoch := m.epoch + "'"
				if m.bad == "epoch reused" {
					epoch = m.epoch
				}
				next = newModel(m.traits, m.bad, epoch)
			}
			fx.Write = next.fixture().Write
			return next.source(), nil
		}
	}
	if m.Spoil {
		fx.Spoil = func(_ context.Context, key string) error {
			m.commit(backendtest.Change[thing]{Key: key, Object: rotten})
			return nil
		}
	}
	if m.Compact {
		fx.Compact = func(context.Context) error {
			m.locked(func() { m.kept, m.log = m.rev, nil })
			return nil
		}
	}
	if m.Forget {
		fx.Forget = func(context.Context) error { m.locked(m.forgetLocked); return nil }
	}
	if m.Cut {
		fx.Cut = func(context.Context) error { m.endAll(); return nil }
	}
	if m.Down {
		fx.Down = func(context.Context) (func() error, error) {
			m.endAll()
			up := make(chan struct{})
			m.locked(func() { m.up = up })
			return func() error { m.locked(func() { m.up = nil }); close(up); return nil }, nil
		}
	}
	return fx
}

func (m *model) endAll() {
	m.locked(func() {
		close(m.cut)
		m.cut = make(chan struct{})
	})
}

func (m *model) forgetLocked() {
	for i, l := range m.log {
		var left []event
		for _, e := range l.events {
			if e.Op == reflector.OpDelete {
				m.forgot = l.rev
			} else {
				left = append(left, e)
			}
		}
		m.log[i].events = left
	}
}

// source shows what there is of the model.
func (m *model) source() reflector.ListWatcher[thing] {
	if m.Writes {
		return decoding{m}
	}
	return struct{ reflector.ListWatcher[thing] }{decoding{m}}
}
