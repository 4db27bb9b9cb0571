package fake

import (
	"fmt"
	"slices"
)

// weather is a plan being carried out.
type weather struct {
	plan   Plan
	origin any           // the store as the plan was set, if a fault restores that
	over   chan struct{} // closed when the next plan is set
}

func newWeather(p Plan) *weather {
	for i, f := range p.Faults {
		if err := f.check(); err != nil {
			panic(fmt.Sprintf("fake: fault %d of the plan: %v", i, err))
		}
	}
	p.Faults = slices.Clone(p.Faults)
	return &weather{plan: p, over: make(chan struct{})}
}

// restores says that the state as of now will be needed.
func (w *weather) restores() bool {
	return slices.ContainsFunc(w.plan.Faults, func(f Fault) bool { return f.Do == Restore && f.Back == 0 })
}

// stale says that reads may be.
func (w *weather) stale() bool {
	return slices.ContainsFunc(w.plan.Faults, func(f Fault) bool { return f.Do == StaleRead })
}

// call answers what strikes the caller's n-th call of op now, and which faults with
// Call strike within it, when it is a watch. Under the Backend's lock.
func (w *weather) call(who *caller, op Op, n int) (now []Fault, later []int) {
	if who.under != w {
		who.under, who.in = w, make([]int, len(w.plan.Faults))
	}
	for i, f := range w.plan.Faults {
		if f.on()&op == 0 {
			continue
		}
		who.in[i]++
		switch {
		case f.Call > 0 && who.in[i] != f.Call:
		case f.inStream():
			if f.Call > 0 {
				later = append(later, i)
			}
		case f.Call > 0, chance(f.OneIn, w.plan.Seed^who.hash, uint64(i), uint64(op), uint64(n)):
			now = append(now, f)
		}
	}
	return now, later
}

// batch answers what strikes the k-th batch of the caller's n-th watch; first says
// that it is the first one with a change. later is what call answered for the
// watch, nil if that was under another plan. Under the Backend's lock.
func (w *weather) batch(who *caller, n, k int, first bool, later []int) (now []Fault) {
	for i, f := range w.plan.Faults {
		lag := f.Do == Delay && f.Call == 0 && f.on()&Watch != 0
		switch {
		case !f.inStream() && !lag:
		case f.Call > 0:
			mine := k == 1
			if f.does(Duplicate, Reorder, Drop) {
				mine = first
			}
			if mine && slices.Contains(later, i) {
				now = append(now, f)
			}
		case chance(f.OneIn, w.plan.Seed^who.hash, uint64(i), uint64(Watch), uint64(n), uint64(k)):
			now = append(now, f)
		}
	}
	return now
}

// chance decides one in n by nothing but the numbers given.
func chance(n int, numbers ...uint64) bool {
	if n <= 1 {
		return true
	}
	var h uint64
	for _, x := range numbers {
		h = mix(h ^ x)
	}
	return h%uint64(n) == 0
}

// mix is the finaliser of splitmix64: neighbours in, strangers out.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
