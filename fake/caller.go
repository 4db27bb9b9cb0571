package fake

import (
	"context"
	"hash/fnv"
)

// caller is one name under which calls are made. It is guarded by the Backend's
// lock.
type caller struct {
	name  string
	hash  uint64 // of the name; 0 for none
	calls [ops]int
	under *weather // the plan that in belongs to
	in    []int    // of each fault, this caller's calls of its set so far
	hooks
}

// hooks are what a test does to the calls of one caller, or of all.
type hooks struct {
	intercept [ops]func(ctx context.Context, key string) error
	pauses    []*Pause
}

func newCaller(name string) *caller {
	c := &caller{name: name}
	if name != "" {
		h := fnv.New64a()
		h.Write([]byte(name))
		c.hash = h.Sum64()
	}
	return c
}

// As is the same Backend, with its store, plan and log, under a caller's name. Its
// calls are counted and struck by themselves: what other callers do, and when, has
// no influence on them. Give each goroutine of a test a name of its own. One name
// is one caller, however often it is asked for; "" is the Backend as New made it.
//
// Intercept, PauseBefore, PauseAfter, Cut, Log and Calls are here about this
// caller alone, and without a name about all of them.
func (b *Backend[T]) As(name string) *Backend[T] {
	b.mu.Lock()
	defer b.mu.Unlock()
	who := b.callers[name]
	if who == nil {
		who = newCaller(name)
		b.callers[name] = who
	}
	return &Backend[T]{core: b.core, to: b.to, dry: b.dry, who: who}
}

// hooksLocked are those that this view of the Backend sets.
func (b *Backend[T]) hooksLocked() *hooks {
	if b.who.name == "" {
		return &b.hooks
	}
	return &b.who.hooks
}

// about says whether a call of who is seen in this view.
func (b *Backend[T]) about(who string) bool { return b.who.name == "" || b.who.name == who }
