package fake

import (
	"fmt"
	"slices"
)

// weather is a plan being carried out. It is guarded by the Backend's lock.
type weather struct {
	plan Plan
	in   []int         // of each fault, the calls of its set so far
	over chan struct{} // closed when the next plan is set
}

func newWeather(p Plan) *weather {
	for i, f := range p.Faults {
		if err := f.check(); err != nil {
			panic(fmt.Sprintf("fake: fault %d of the plan: %v", i, err))
		}
	}
	p.Faults = slices.Clone(p.Faults)
	return &weather{plan: p, in: make([]int, len(p.Faults)), over: make(chan struct{})}
}

// call answers what strikes the n-th call of op now, and which faults with Call
// strike within it, when it is a watch.
func (w *weather) call(op Op, n int) (now []Fault, later []int) {
	for i, f := range w.plan.Faults {
		if f.on()&op == 0 {
			continue
		}
		w.in[i]++
		switch {
		case f.Call > 0 && w.in[i] != f.Call:
		case f.inStream():
			if f.Call > 0 {
				later = append(later, i)
			}
		case f.Call > 0, chance(f.OneIn, w.plan.Seed, uint64(i), uint64(op), uint64(n)):
			now = append(now, f)
		}
	}
	return now, later
}

// batch answers what strikes the n-th watch after its k-th batch. later is what
// call answered for it, nil if that was under another plan.
func (w *weather) batch(n, k int, later []int) (now []Fault) {
	for i, f := range w.plan.Faults {
		switch {
		case !f.inStream():
		case f.Call > 0:
			if k == 1 && slices.Contains(later, i) {
				now = append(now, f)
			}
		case chance(f.OneIn, w.plan.Seed, uint64(i), uint64(Watch), uint64(n), uint64(k)):
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
