package reconcile

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"
)

// Runner is whatever runs until its context ends: a controller, an informer, or
// something of your own. Run returns nil when ctx ended it.
type Runner interface {
	Run(ctx context.Context) error
}

// Needer is a Runner that says what must run before it and end after it. Those
// of them that have a method WaitForSync(context.Context) error (as informers do)
// must have returned nil from it before the Needer is started.
type Needer interface{ Needs() []Runner }

// Run runs all, with everything that they need, until ctx ends or one of them
// fails. It starts the informers that controllers name, so do not run those yourself.
// It is Group's Run with the defaults.
func Run(ctx context.Context, all ...Runner) error { return new(Group).Run(ctx, all...) }

// Group is [Run] with choices. It keeps nothing between two calls of Run.
type Group struct {
	// Grace is how long work that runs when the end comes may go on. Defaults to
	// 30 s; negative is not at all.
	Grace time.Duration
}

// Run starts all, and the runners that they need, and what those need, each once
// however often it is named. Each is started as soon as what it needs itself is
// synced: a source that can't be listed holds up those who read it and nobody
// else.
//
// It returns when all have ended. That begins when ctx ends, when one of them
// fails (then the first failure is returned, and later ones are not), or when all
// that were named have returned nil by themselves.
//
// The end goes against the flow: what nobody needs is stopped first, controllers
// therefore before informers, so that work which uses its grace still reads live
// caches. What has not returned by then, and a moment after its contexts were
// cancelled, is named in a *[StillRunning] and left alone.
//
// A panic of a runner, in its WaitForSync or in the methods of an error that it
// returned, is a failure, a *[PanicError]. Faulty arguments are
// ErrInvalidOptions, joined, before anything is started.
func (g *Group) Run(ctx context.Context, all ...Runner) error {
	nodes, err := plan(all)
	if err != nil {
		return err
	}
	grace := g.Grace
	switch {
	case grace == 0:
		grace = defaultGrace
	case grace < 0:
		grace = 0
	}
	stopping, stop := context.WithCancel(ctx)
	defer stop()
	// What runs outlives ctx until its turn to stop has come.
	base := context.WithValue(context.WithoutCancel(ctx), graceKey{}, grace)
	over := make(chan *node, len(nodes))
	for _, n := range nodes {
		n.ctx, n.cancel = context.WithCancel(base)
		go n.run(stopping)
	}
	for _, n := range nodes {
		go n.conduct(stopping, grace, over)
	}

	var first, blocked error
	late := map[string][]string{}
	named := 0
	for _, n := range nodes {
		if n.named {
			named++
		}
	}
	for range nodes {
		n := <-over
		still, err := n.verdict(stopping.Err() != nil)
		for name, keys := range still {
			late[name] = append(late[name], keys...)
		}
		if n.blocked {
			blocked, err = errors.Join(blocked, err), nil
		}
		if first == nil && err != nil {
			first = err
		}
		if n.named {
			named--
		}
		if err != nil || n.blocked || named == 0 {
			stop()
		}
	}
	if first == nil {
		first = blocked
	}
	if len(late) > 0 {
		still := &StillRunning{Keys: late}
		if first == nil {
			return still
		}
		return errors.Join(first, still)
	}
	return first
}

// graceKey carries Group.Grace to the controllers, through whatever wraps them.
type graceKey struct{}

func graceOf(ctx context.Context) time.Duration {
	if grace, ok := ctx.Value(graceKey{}).(time.Duration); ok {
		return grace
	}
	return defaultGrace
}

// node is one runner among those that it needs and that need it.
type node struct {
	runner Runner
	name   string
	named  bool    // in the call of Run, and not only needed
	needs  []*node // these first
	before []*node // these end first

	ctx    context.Context
	cancel context.CancelFunc
	within atomic.Pointer[node] // whose code it is in: its own, or that of what it waits for
	ended  chan struct{}        // closed when Run has returned, or will not be called
	over   chan struct{}        // closed when ended, or given up
	// Set before ended is closed.
	err     error
	blocked bool // err is not its own: something that it needs ended unsynced
	// Set before over is closed.
	late bool
}

// run waits for what the node needs, and runs it.
func (n *node) run(stopping context.Context) {
	defer close(n.ended)
	where, returned := n.name, false
	defer func() {
		switch v := recover(); {
		case v != nil:
			n.err, n.blocked = caught(where, v), false
		case !returned:
			n.err = &PanicError{Where: where, Value: "runtime.Goexit was called"}
		}
	}()
	for _, need := range n.needs {
		s, ok := need.runner.(syncer)
		if !ok {
			continue
		}
		n.within.Store(need)
		where = "WaitForSync of " + need.name
		err := s.WaitForSync(stopping)
		readable(err)
		if err != nil {
			if stopping.Err() == nil {
				n.err, n.blocked = fmt.Errorf("reconcile: %s can't start: %w", n.name, err), true
			}
			returned = true
			return
		}
	}
	if stopping.Err() != nil {
		returned = true
		return
	}
	n.within.Store(n)
	where = n.name
	err := n.runner.Run(n.ctx)
	readable(err)
	if err != nil {
		n.err = fmt.Errorf("%s: %w", n.name, err)
	}
	returned = true
}

// conduct stops the node when its turn has come, and gives up on it when it does
// not end.
func (n *node) conduct(stopping context.Context, grace time.Duration, over chan<- *node) {
	defer func() {
		n.cancel()
		close(n.over)
		over <- n
	}()
	select {
	case <-n.ended:
		return
	case <-stopping.Done():
	}
	for _, other := range n.before {
		<-other.over
	}
	n.cancel()
	// A controller keeps to its grace by itself, and knows its keys.
	n.late = !within(n.ended, plus(grace, 2*unwind))
}

// verdict is what came of the node: what of it still runs, and its failure.
func (n *node) verdict(stopping bool) (still map[string][]string, failed error) {
	if n.late {
		name := n.name
		if in := n.within.Load(); in != nil {
			name = in.name // one that was never started is not running
		}
		return map[string][]string{name: nil}, nil
	}
	if left, ok := errors.AsType[*StillRunning](n.err); ok {
		if errors.Unwrap(n.err) == error(left) {
			return left.Keys, nil
		}
		return left.Keys, n.err
	}
	if stopping && (errors.Is(n.err, context.Canceled) || errors.Is(n.err, context.DeadlineExceeded)) {
		return nil, nil // it says in its own way that it was stopped
	}
	return nil, n.err
}

// unwrap finds the runner that is to be run, nil for none.
func unwrap(r Runner) Runner {
	if client, ok := r.(interface{ runner() Runner }); ok {
		return client.runner()
	}
	if r == nil {
		return nil
	}
	if v := reflect.ValueOf(r); v.Kind() == reflect.Pointer && v.IsNil() {
		return nil
	}
	return r
}
