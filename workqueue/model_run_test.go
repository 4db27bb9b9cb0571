package workqueue_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/retry"
	"github.com/homeostat/homeostat/workqueue"
)

// stepper does the same to a queue and to the model, one operation after the
// other, and compares them after each.
type stepper struct {
	t       *testing.T
	q       *workqueue.Queue[uint8]
	m       *model
	ended   context.Context
	touched uint8
	op      string
}

var errPlain = errors.New("plain")

// delays repeat, so that several keys have the same time.
var delays = []time.Duration{-1, 0, 1, time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, 101 * time.Millisecond, time.Second, time.Minute, 1<<63 - 1}

var outcomes = []error{
	nil, nil, nil, errPlain, errPlain,
	retry.Later(0, "at once"), retry.Later(10*time.Millisecond, "soon"),
	retry.After(errPlain, 0), retry.After(errPlain, 100*time.Millisecond),
	retry.Permanent(errPlain), errors.Join(retry.Later(time.Second, "x"), errPlain),
}

// replay runs a history of three bytes an operation.
func replay(t *testing.T, history []byte, opts workqueue.Options[uint8], label string) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	s := &stepper{t: t, q: workqueue.New(&opts), m: newModel(opts, time.Now()), ended: ended}
	s.step(0, 0, 0) // starts the queue's clock
	for i := 0; i+2 < len(history) && !t.Failed(); i += 3 {
		s.step(history[i], history[i+1]%12, history[i+2])
		s.compare(i%96 == 0)
		if t.Failed() {
			t.Logf("%s, operation %d: %s", label, i/3, s.op)
		}
	}
	s.q.Abort()
}

func (s *stepper) step(op, key, arg uint8) {
	s.touched = key
	say := func(format string, args ...any) { s.op = fmt.Sprintf(format, args...) }
	switch {
	case op < 60:
		say("Add(%d)", key)
		s.q.Add(key)
		s.m.add(key, 0, "")
	case op < 75:
		d, why := delays[int(arg)%len(delays)], []string{"", "a", "b"}[arg%3]
		say("AddWith(%d, %v, %q)", key, d, why)
		s.q.AddWith(key, workqueue.AddOptions{After: d, Reason: why})
		s.m.add(key, d, why)
	case op < 95:
		d := delays[int(arg)%len(delays)]
		say("AddAfter(%d, %v)", key, d)
		s.q.AddAfter(key, d)
		s.m.add(key, d, "")
	case op < 115:
		d := delays[int(arg)%len(delays)] + time.Duration(arg/16)*time.Microsecond
		if d < 0 {
			d = 0 // the longest delay wrapped around
		}
		say("Remind(%d, %v)", key, d)
		s.q.Remind(key, d)
		s.m.remind(key, d)
	case op < 122:
		say("Cancel(%d)", key)
		equal(s, s.m.cancel(key), s.q.Cancel(key))
	case op < 130:
		say("Forget(%d)", key)
		s.q.Forget(key)
		s.m.forget(key)
	case op < 175:
		say("Get")
		s.get()
	case op < 220:
		outcome := outcomes[int(arg)%len(outcomes)]
		say("Done(%d, %v)", key, outcome)
		err := s.q.Done(key, outcome)
		equal(s, s.m.done(key, outcome), err == nil)
		equal(s, err != nil, errors.Is(err, workqueue.ErrUnknownKey))
	case op < 255:
		d := max(delays[int(arg)%9], 1)
		say("sleep %v", d)
		time.Sleep(d)
		synctest.Wait()
		s.m.advance(d)
	case arg < 60:
		say("Drain")
		s.drain()
	case arg < 80:
		say("Abort")
		left := s.q.Abort()
		s.m.closed = true
		want := s.m.leftOver(true)
		slices.Sort(left)
		slices.Sort(want)
		equals(s, want, left)
	default:
		say("Get with an ended context")
		_, err := s.q.Get(s.ended)
		equal(s, true, err != nil)
	}
}

func (s *stepper) get() {
	switch {
	case s.m.closed:
		_, err := s.q.Get(s.t.Context())
		equal(s, workqueue.ErrClosed, err)
	case len(s.m.fifo) > 0:
		key, err := s.q.Get(s.t.Context())
		equal(s, nil, err)
		s.touched = s.m.get()
		equal(s, s.touched, key)
	}
}

// drain gives up at once, so the rest of the history happens while it drains.
func (s *stepper) drain() {
	left, err := s.q.Drain(s.ended)
	s.m.draining = true
	equals(s, s.m.leftOver(false), left)
	var held *workqueue.HeldError[uint8]
	if s.m.count(workqueue.Working) == 0 && (s.m.closed || len(s.m.fifo) == 0) {
		s.m.closed = true
		equal(s, nil, err)
	} else if errors.As(err, &held) {
		equal(s, s.m.count(workqueue.Working), len(held.Keys))
		equal(s, len(s.m.fifo), held.Queued)
	} else {
		s.t.Errorf("Drain: %v", err)
	}
}

func (s *stepper) compare(all bool) {
	if s.m.draining && s.m.count(workqueue.Working) == 0 && len(s.m.fifo) == 0 {
		s.m.closed = true
	}
	st := s.q.Stats()
	equals(s, []int{s.m.count(workqueue.Due), s.m.count(workqueue.Delayed), s.m.count(workqueue.Working), s.m.count(workqueue.Parked)},
		[]int{st.Due, st.Delayed, st.Working, st.Parked})
	equal(s, s.m.refused, st.Refused)
	equal(s, len(s.m.fifo), s.q.Len())
	equal(s, len(s.m.fifo) == 0, st.Oldest.IsZero())
	got, known := s.q.Explain(s.touched)
	s.entry(s.touched, got, known)
	if !all {
		return
	}
	var due, delayed, every []uint8
	for e := range s.q.Keys(0) {
		s.entry(e.Key, e, true)
		every = append(every, e.Key)
	}
	for e := range s.q.Keys(workqueue.Due) {
		due = append(due, e.Key)
	}
	for e := range s.q.Keys(workqueue.Delayed) {
		delayed = append(delayed, e.Key)
	}
	equal(s, len(s.m.keys), len(every))
	equals(s, s.m.fifo, due)
	if !slices.IsSortedFunc(delayed, s.m.before) {
		s.t.Errorf("delayed keys out of order: %v", delayed)
	}
}

func (s *stepper) entry(key uint8, got workqueue.Entry[uint8], known bool) {
	w := s.m.keys[key]
	if (w != nil) != known {
		s.t.Errorf("key %d: wanted %v, known %v: %+v", key, w != nil, known, got)
		return
	}
	if w == nil {
		return
	}
	equal(s, key, got.Key)
	equal(s, w.state(), got.State)
	equal(s, w.attempts, got.Attempts)
	equal(s, w.err, got.Err)
	if w.state() != workqueue.Due && !w.at().Equal(got.Due) {
		s.t.Errorf("key %d: due %v, want %v", key, got.Due, w.at())
	}
	reasons := w.asked
	if w.working {
		reasons = w.served
	}
	equal(s, len(reasons), len(got.Reasons))
	for r, n := range reasons {
		equal(s, n, got.Reasons[r])
	}
}

// equal and equals are called some ten million times: what a failure needs is done
// only when there is one.
func equal[T comparable](s *stepper, want, got T) {
	if want != got {
		s.t.Helper()
		s.t.Errorf("want %v, got %v", want, got)
	}
}

func equals[T comparable](s *stepper, want, got []T) {
	if !slices.Equal(want, got) {
		s.t.Helper()
		s.t.Errorf("want %v, got %v", want, got)
	}
}

// policies are what histories are run under.
var policies = []workqueue.Options[uint8]{
	{Backoff: retry.Backoff{NoJitter: true}},
	{Backoff: retry.Backoff{Schedule: []time.Duration{0, 10 * time.Millisecond, time.Second}}, Park: workqueue.Park{Attempts: 3}},
	{Backoff: retry.Backoff{Base: 10 * time.Millisecond, NoJitter: true}, Park: workqueue.Park{Age: time.Second}},
	{Backoff: retry.Backoff{NoJitter: true}, Budget: retry.NewBudget(0, 0)},
}

// Row Q12 and promise G6: a million random operations against the model. Depth,
// order, who has which key, what is planned and why are compared after each.
func TestQ12_Model(t *testing.T) {
	const length, shards = 2_000, 4
	seed := uint64(time.Now().UnixNano())
	for shard := range shards {
		t.Run(fmt.Sprint("shard ", shard), func(t *testing.T) {
			t.Parallel()
			for run := range operations / length / shards {
				rng := rand.New(rand.NewPCG(seed, uint64(shard*operations+run)))
				history := make([]byte, 3*length)
				for i := range history {
					history[i] = byte(rng.Uint32())
				}
				synctest.Test(t, func(t *testing.T) {
					replay(t, history, policies[run%len(policies)], fmt.Sprintf("seed %d, shard %d, run %d", seed, shard, run))
				})
				if t.Failed() {
					return
				}
			}
		})
	}
}

func FuzzQueue(f *testing.F) {
	f.Add([]byte{0, 0, 0, 130, 0, 0, 175, 0, 0}, uint8(0))
	f.Add([]byte{100, 1, 7, 0, 1, 0, 240, 0, 8, 130, 0, 0}, uint8(1))
	f.Add([]byte{0, 2, 0, 130, 0, 0, 0, 2, 0, 255, 0, 1, 175, 2, 3, 130, 0, 0, 175, 2, 0}, uint8(2))
	f.Fuzz(func(t *testing.T, history []byte, policy uint8) {
		synctest.Test(t, func(t *testing.T) {
			replay(t, history, policies[int(policy)%len(policies)], fmt.Sprintf("policy %d", policy%4))
		})
	})
}
