package stepped

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/reflector"
)

// Config says what histories to run. The zero value is right: 120 steps, 10 keys, 2
// clients, at least 3 faults, backend/memory.
type Config struct {
	Seed                         uint64
	Steps, Keys, Clients, Faults int
	// Store makes the store under test, which keeps so many changes. Defaults to
	// Memory.
	Store func(history int) Store
	// Source and Handler, if set, wrap the gate of each client, and each of their
	// handlers: what a broken layer in between would do.
	Source  func(reflector.ListWatcher[Thing]) reflector.ListWatcher[Thing]
	Handler func(func(informer.Change[Thing])) func(informer.Change[Thing])
	// Unrepaired has nothing repair what a source has hidden, but for audits: such
	// histories may end in other states, which Stats counts.
	Unrepaired bool
	// Stats, if set, counts what was done. Not for use by several at once.
	Stats *Stats
}

func (c Config) defaults() Config {
	def := func(n *int, value int) {
		if *n == 0 {
			*n = value
		}
	}
	def(&c.Steps, 120)
	def(&c.Keys, 10)
	def(&c.Clients, 2)
	def(&c.Faults, 3)
	c.Keys = min(c.Keys, maxKeys)
	if c.Store == nil {
		c.Store = Memory
	}
	return c
}

// Failure is a history that went wrong.
type Failure struct {
	// Seed is where it was found; 0 for a replay.
	Seed uint64
	// What differs from what has to be.
	What string
	// Text is the history, for [Replay]; Steps is how many steps it has.
	Text  string
	Steps int
	// Trace is what happened, step by step.
	Trace string

	script script
}

// String says all of it.
func (f *Failure) String() string {
	return fmt.Sprintf("seed %d: %s\n\nwhat happened:\n%s\nto replay it:\n%s", f.Seed, f.What, f.Trace, f.Text)
}

// Run runs the history of cfg.Seed. If it goes wrong, the test fails with a short
// history that goes wrong too.
func Run(t *testing.T, cfg Config) {
	t.Helper()
	if f := Find(t, cfg); f != nil {
		t.Fatal(Shrink(t, cfg, f))
	}
}

// Find runs the history of cfg.Seed; nil when all is well.
func Find(t *testing.T, cfg Config) *Failure {
	t.Helper()
	return find(t, cfg, false).failure()
}

// Trace runs the history of cfg.Seed, and gives it as text and all that happened,
// whether it goes well or not.
func Trace(t *testing.T, cfg Config) (text, trace string) {
	t.Helper()
	o := find(t, cfg, true)
	return o.script.String(), o.trace
}

// Replay runs a history as it is printed by a failure, and says how it goes wrong;
// nil when all is well. A step that can't be done when its turn comes is skipped.
func Replay(t *testing.T, cfg Config, text string) *Failure {
	t.Helper()
	s, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return replay(t, cfg.defaults(), s, true).failure()
}

// TraceOf is what happens in a history that is given as text.
func TraceOf(t *testing.T, cfg Config, text string) string {
	t.Helper()
	s, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return replay(t, cfg.defaults(), s, true).trace
}

// outcome is what became of a history.
type outcome struct {
	seed          uint64
	script        script // the steps that were done
	broken, trace string
}

func (o outcome) failure() *Failure {
	if o.broken == "" {
		return nil
	}
	return &Failure{Seed: o.seed, What: o.broken, Text: o.script.String(), Steps: len(o.script.steps), Trace: o.trace, script: o.script}
}

func find(t *testing.T, cfg Config, trace bool) outcome {
	t.Helper()
	cfg = cfg.defaults()
	r := rand.New(rand.NewPCG(cfg.Seed, 1))
	s := draw(r, cfg)
	return inBubble(t, cfg, s, trace, func(w *world) {
		for c := (chooser{r, w}); len(w.done) < cfg.Steps && !w.failed(); {
			c.next(cfg.Steps - len(w.done))
		}
	})
}

func replay(t *testing.T, cfg Config, s script, trace bool) outcome {
	t.Helper()
	return inBubble(t, cfg, s, trace, func(w *world) {
		for _, st := range s.steps {
			if w.failed() {
				return
			}
			w.play(st)
		}
	})
}

// hangs is how long a history may take that takes a millisecond.
const hangs = 2 * time.Minute

// hanging says of a history what it was doing.
func hanging(w *world, s script) string {
	if w == nil {
		return "stepped: a history has not begun"
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s.steps = append(s.steps[:0:0], w.done...)
	return fmt.Sprintf("stepped: seed %d hangs in %q, after\n%s", w.cfg.Seed, w.trying, s)
}

// inBubble runs one history to its end.
func inBubble(t *testing.T, cfg Config, s script, trace bool, history func(*world)) outcome {
	t.Helper()
	o := outcome{seed: cfg.Seed, script: s}
	var running atomic.Pointer[world]
	// Who spins can't be stopped, only named.
	defer time.AfterFunc(hangs, func() { panic(hanging(running.Load(), s)) }).Stop()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t.Context(), cfg, s, trace)
		running.Store(w)
		w.live(history)
		o.script.steps = w.done
		w.finish()
		o.broken, o.trace = w.plain(w.broken), w.trace.String()
	})
	return o
}

// Check says what is wrong with the text of a history.
func Check(text string) error {
	_, err := parse(text)
	return err
}
