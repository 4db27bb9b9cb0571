package stepped

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/reflector"
)

// world is one history on its way: the store, the model, the clients. The
// scheduler's goroutine does everything; clients only move while it waits.
type world struct {
	cfg   Config
	ctx   context.Context
	keys  []string
	store Store
	model *model
	step  int // counts the steps that were done

	clients []*client
	saves   []save

	written  written // the last write
	waits    int
	restores int
	faults   int
	synced   int // looks at a client with a full state, of
	looks    int
	began    time.Time

	mu     sync.Mutex
	broken string // the first thing that was wrong

	done    []step // written under mu, for the watchdog
	trying  step
	tracing bool
	trace   strings.Builder
}

// save is a backup.
type save struct {
	of    *point
	saved any
}

func newWorld(ctx context.Context, cfg Config, s script, trace bool) *world {
	w := &world{cfg: cfg, ctx: ctx, began: time.Now(), tracing: trace}
	for k := range cfg.Keys {
		w.keys = append(w.keys, fmt.Sprintf("k%02d", k))
	}
	w.store = cfg.Store(s.history)
	w.model = newModel(s.history, w.head())
	w.saves = []save{{w.model.now(), w.store.Save()}}
	for id, k := range s.clients {
		w.clients = append(w.clients, w.start(id, k))
	}
	w.settle()
	return w
}

func (w *world) head() reflector.Cursor {
	at, err := w.store.Powers().Head(w.ctx)
	if err != nil {
		w.fault("head: %v", err)
	}
	return at
}

func (w *world) compare(a, b reflector.Cursor) int { return w.store.Powers().Compare(a, b) }

// fault notes what is wrong; the first counts.
func (w *world) fault(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken == "" {
		w.broken = fmt.Sprintf(format, args...)
	}
}

func (w *world) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.broken != ""
}

// settle waits until everybody stands, and checks all that there is to see.
func (w *world) settle() {
	synctest.Wait()
	for _, c := range w.clients {
		c.inspect(c.src.standing())
		c.inspect(c.hnt.standing())
		c.check()
		w.looks++
		if c.inf.Synced() {
			w.synced++
		}
	}
}

// play does one step, if it can be done now.
func (w *world) play(s step) bool {
	w.try(s)
	w.step++
	if !w.do(s) {
		w.step--
		return false
	}
	w.settle()
	w.did(s)
	if w.tracing {
		fmt.Fprintf(&w.trace, "%3d. %s%s\n", len(w.done), s, w.describe())
	}
	return true
}

func (w *world) try(s step) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trying = s
}

func (w *world) did(s step) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done, w.trying = append(w.done, s), step{op: "calm", client: -1, key: -1}
}

// calm lets the sun shine until nothing moves any more: everything that stands is
// let go, and time passes.
func (w *world) calm() {
	for _, c := range w.clients {
		// Only a full state repairs what the source has hidden: an audit, where there
		// is one.
		if c.kind.has("audit") || w.cfg.Unrepaired {
			continue
		}
		if max(c.lied, c.lost) >= c.committed && max(c.lied, c.lost) >= 0 {
			c.inf.Relist("the source has lied")
		}
	}
	synctest.Wait()
	for range 90 {
		w.drain()
		if w.failed() || w.quiet() {
			return
		}
		time.Sleep(time.Second)
		w.settle()
	}
	for _, c := range w.clients {
		if len(c.waits) > 0 {
			w.fault("c%d: WaitFor of k%d, written at %s, never ends", c.id, c.waits[0].key, c.waits[0].of)
		}
		switch {
		case c.equal():
		case w.cfg.Unrepaired && c.knows():
			// A client that goes on asking for ever has kept it company.
		case w.cfg.Unrepaired && c.astrayUnseen():
			if w.cfg.Stats != nil {
				w.cfg.Stats.Astray++
			}
		default:
			w.fault("c%d does not come to rest: %s; cache %s, store %s", c.id, c.doing(), c.cached().show(), w.model.now().state.show())
		}
	}
}

// astrayUnseen: what the source hides was never repaired, since nobody looked; and the
// status says that nobody does.
func (c *client) astrayUnseen() bool {
	lied := max(c.lied, c.lost)
	return lied >= 0 && lied >= c.committed && c.inf.Status().Source.NextAudit.IsZero()
}

// drain lets everything go on that stands.
func (w *world) drain() {
	for range 1000 {
		moved := false
		for _, c := range w.clients {
			for _, l := range []*line{&c.src, &c.hnt} {
				if l.standing() != nil {
					moved = true
					w.step++
					c.let(l, verdict{do: "go"})
					synctest.Wait()
				}
			}
			moved = c.ear.work() || moved
		}
		w.settle()
		if !moved || w.failed() {
			return
		}
	}
	w.fault("it never ends")
}

// quiet: everybody has what the store has.
func (w *world) quiet() bool {
	for _, c := range w.clients {
		if !c.equal() || len(c.waits) > 0 {
			return false
		}
	}
	return true
}

// live does the history, and what follows each; a panic on the way is a fault.
func (w *world) live(history func(*world)) {
	defer func() {
		if v := recover(); v != nil {
			w.fault("panic: %v\n%s", v, debug.Stack())
		}
	}()
	history(w)
	if w.cfg.Stats != nil {
		w.cfg.Stats.count(w)
	}
	if !w.failed() {
		w.calm()
	}
	if !w.failed() {
		w.contents()
	}
	for _, c := range w.clients {
		if !w.failed() && (c.equal() || !w.cfg.Unrepaired || !c.astrayUnseen()) {
			c.last1()
		}
	}
}

// finish ends everything, and sees that nothing is left.
func (w *world) finish() {
	for _, c := range w.clients {
		c.stop()
	}
	synctest.Wait()
	for _, c := range w.clients {
		if !c.ended.Load() {
			w.fault("c%d: Run has not returned", c.id)
		}
	}
}

// contents compares the store itself with the model.
func (w *world) contents() {
	page, err := w.store.List(w.ctx, reflector.ListOptions{})
	if err == nil {
		err = w.model.page(page, w.model.now(), w.keys, "", reflector.ListOptions{})
	}
	if err != nil {
		w.fault("the store in the end: %v", err)
	}
}
