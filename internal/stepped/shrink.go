package stepped

import (
	"slices"
	"testing"
)

// Shrink gives a history that goes wrong, in whatever way, with as few steps as it
// can find: it takes away halves, quarters and so on to single steps, until no step
// can be spared.
func Shrink(t *testing.T, cfg Config, f *Failure) *Failure {
	t.Helper()
	cfg = cfg.defaults()
	cfg.Seed = f.Seed
	best := f.script
	try := func(s script) bool {
		o := replay(t, cfg, s, false)
		if o.broken == "" {
			return false
		}
		best = o.script
		return true
	}
	for size := max(1, len(best.steps)/2); ; {
		shorter := false
		for at := 0; at < len(best.steps); {
			s := best
			s.steps = slices.Delete(slices.Clone(best.steps), at, min(at+size, len(best.steps)))
			if try(s) {
				shorter = true
			} else {
				at += size
			}
		}
		switch {
		case size > 1:
			size /= 2
		case !shorter:
			for id := len(best.clients) - 1; id >= 0 && len(best.clients) > 1; id-- {
				try(best.without(id))
			}
			last := replay(t, cfg, best, true).failure()
			if last == nil { // it goes wrong now and then
				f.What += " (and does not, when it is replayed)"
				return f
			}
			return last
		}
	}
}

// without is the script without a client.
func (s script) without(id int) script {
	s.clients = slices.Delete(slices.Clone(s.clients), id, id+1)
	var steps []step
	for _, st := range s.steps {
		if st.client > id {
			st.client--
		} else if st.client == id {
			continue
		}
		steps = append(steps, st)
	}
	s.steps = steps
	return s
}
