package backendtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"
)

// Run makes all checks, one after the other, each on a store of its own. It ends
// early only when ctx does; what was not made then has ctx's error.
//
// It may be called inside a testing/synctest bubble. Every goroutine that it starts
// has ended when it returns, but for calls of an adapter that ignores its context:
// the check that they were made for fails and says so.
func Run[T any](ctx context.Context, h Harness[T]) Report {
	r := newRun(h)
	var results []Result
	for _, c := range checksOf[T]() {
		results = append(results, r.make(ctx, c))
	}
	for i := range results {
		results[i].Err = errors.Join(append([]error{results[i].Err}, r.noted(results[i].Name)...)...)
	}
	return Report{Results: results, Lacks: r.lacks()}
}

// Test is Run as a test: each check a subtest, skipped and failed as such. What the
// store lacks is logged. Several may run in parallel.
func Test[T any](t *testing.T, h Harness[T]) Report {
	t.Helper()
	r := newRun(h)
	var report Report
	for _, c := range checksOf[T]() {
		t.Run(c.Name, func(t *testing.T) {
			res := r.make(t.Context(), c)
			report.Results = append(report.Results, res)
			switch {
			case res.Err != nil:
				t.Errorf("%s\n%v", c.What, res.Err)
			case res.Skipped != "":
				t.Skip("lacks " + res.Skipped)
			}
		})
	}
	for i, res := range report.Results {
		if late := errors.Join(r.noted(res.Name)...); late != nil {
			report.Results[i].Err = errors.Join(res.Err, late)
			t.Errorf("%s: %s\n%v", res.Name, res.What, late)
		}
	}
	report.Lacks = r.lacks()
	if len(report.Lacks) > 0 {
		t.Logf("lacks %v", report.Lacks)
	}
	return report
}

// Checks lists all checks, in the order in which they are made.
func Checks() []Check {
	var all []Check
	for _, c := range checksOf[struct{}]() {
		all = append(all, c.Check)
	}
	return all
}

// check is a Check and how it is made.
type check[T any] struct {
	Check
	make func(*kit[T])
}

// checksOf are all checks. Those that come last also judge what all others have
// seen on their way.
func checksOf[T any]() []check[T] {
	return slices.Concat(listChecks[T](), watchChecks[T](), resumeChecks[T](), contextChecks[T](), faultChecks[T](), keyChecks[T](),
		powerChecks[T](), convergeChecks[T](), writeChecks[T](), patchChecks[T](), answerChecks[T](), softChecks[T](),
		protocolChecks[T]())
}

// run is what all checks of one Run share.
type run[T any] struct {
	h       Harness[T]
	fault   error // of the harness
	anyKeys bool  // the harness leaves the keys to the kit

	mu     sync.Mutex
	facts  facts
	lacked map[string]bool
	notes  map[string][]error
}

// facts are what was found out about a source.
type facts struct{ positions, versions, ids bool }

func newRun[T any](h Harness[T]) *run[T] {
	r := &run[T]{lacked: map[string]bool{}, notes: map[string][]error{}}
	r.anyKeys = h.Key == nil
	r.h, r.fault = h.withDefaults()
	return r
}

// lack notes that there is no such thing.
func (r *run[T]) lack(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lacked[name] = true
}

func (r *run[T]) lacks() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.lacked))
}

// enough is how many notes of one kind are kept: a broken rule is broken often.
const enough = 3

// note keeps what the check named owner is to judge.
func (r *run[T]) note(owner string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.notes[owner]) < enough {
		r.notes[owner] = append(r.notes[owner], err)
	}
}

// noted takes what was noted for a check.
func (r *run[T]) noted(owner string) []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.notes[owner]
	delete(r.notes, owner)
	return all
}

// verdict is what ends a check early: by panic, so that helpers can do it.
type verdict struct {
	err     error
	skipped string
}

// make makes one check.
func (r *run[T]) make(ctx context.Context, c check[T]) Result {
	start := time.Now()
	res := Result{Check: c.Check}
	switch {
	case r.fault != nil:
		res.Err = r.fault
	case ctx.Err() != nil:
		res.Err = ctx.Err()
	default:
		inner, cancel := context.WithCancel(ctx)
		k := &kit[T]{run: r, h: r.h, ctx: inner, name: c.Name}
		v := k.judge(c.make)
		cancel() // whatever still waits for something need not
		res.Skipped = v.skipped
		res.Err = errors.Join(v.err, k.close(), ctx.Err())
	}
	// Of what the checks before have seen on their way.
	res.Err = errors.Join(append([]error{res.Err}, r.noted(c.Name)...)...)
	if res.Err != nil {
		res.Skipped = ""
	}
	res.Took = time.Since(start)
	return res
}

// judge makes the check and says how it ended.
func (k *kit[T]) judge(make func(*kit[T])) (v verdict) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case verdict:
			v = p
		default:
			v = verdict{err: fmt.Errorf("the kit, or a function of the harness, panics: %w", caught(p))}
		}
	}()
	make(k)
	return verdict{}
}
