package stepped

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"

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
	cfg = cfg.defaults()
	return inBubble(t, cfg, func(w func(script) *world) script {
		r := rand.New(rand.NewPCG(cfg.Seed, 1))
		s := draw(r, cfg)
		c := chooser{r, w(s)}
		for n := range cfg.Steps {
			s.steps = append(s.steps, c.next(cfg.Steps-n))
			if c.w.failed() {
				break
			}
		}
		return s
	})
}

// Replay runs a history as it is printed by a failure, and says how it goes wrong;
// nil when all is well. A step that can't be done when its turn comes is skipped.
func Replay(t *testing.T, cfg Config, text string) *Failure {
	t.Helper()
	s, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return replay(t, cfg.defaults(), s, true)
}

func replay(t *testing.T, cfg Config, s script, trace bool) *Failure {
	return inBubble(t, cfg, func(start func(script) *world) script {
		w := start(s)
		if trace {
			w.trace = &strings.Builder{}
		}
		done := script{history: s.history, clients: s.clients}
		for _, st := range s.steps {
			if w.failed() {
				break
			}
			w.tracef("%3d. %s", len(done.steps)+1, st)
			if !w.play(st) {
				w.tracef(": skipped\n")
				continue
			}
			done.steps = append(done.steps, st)
			w.tracef("%s\n", w.describe())
		}
		return done
	})
}

// inBubble runs one history to its end.
func inBubble(t *testing.T, cfg Config, history func(start func(script) *world) script) (f *Failure) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var w *world
		s := history(func(s script) *world {
			w = newWorld(t.Context(), cfg, s)
			return w
		})
		w.finish()
		if w.broken == "" {
			return
		}
		f = &Failure{Seed: cfg.Seed, What: w.broken, Text: s.String(), Steps: len(s.steps), script: s}
		if w.trace != nil {
			f.Trace = w.trace.String()
		}
	})
	return f
}

// describe says where everybody is.
func (w *world) describe() string {
	text := fmt.Sprintf("\n     store %s%s", w.model.now(), w.model.now().state.show())
	for _, c := range w.clients {
		text += fmt.Sprintf("\n     c%d %s: cache %s, told %s", c.id, c.doing(), c.cached().show(), c.ear.told.show())
		for _, l := range []*line{&c.src, &c.hnt} {
			if call := l.standing(); call != nil {
				text += "; " + w.standing(call)
			}
		}
	}
	return text
}

// standing says what a call is.
func (w *world) standing(c *call) string {
	text := c.what.String()
	switch c.what {
	case askList:
		if c.list.Page != "" {
			text = "page?"
		}
	case askWatch:
		if c.watch.After != "" {
			text += " after " + w.names(c.watch.After)
		}
	case gotPage:
		text += fmt.Sprintf(" of %d at %s", len(c.page.Items), w.names(c.page.Cursor))
	case gotBatch:
		if c.batch.Reset {
			text += " reset"
		}
		for _, e := range c.batch.Events {
			op := "put"
			if e.Op == reflector.OpDelete {
				op = "delete"
			}
			text += fmt.Sprintf(" %s %s", op, show(e.Item))
		}
		if c.batch.Synced {
			text += " synced"
		}
		if c.batch.Cursor != "" {
			text += " at " + w.names(c.batch.Cursor)
		}
	case gotHint, askGet, gotItem:
		text += " " + c.key
	}
	if c.err != nil {
		text += ": " + c.err.Error()
	}
	return text
}
