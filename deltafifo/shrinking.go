package deltafifo

// shrinking is a map that gives memory back: a built-in map keeps the room of
// its fullest hour for ever. Deleting stays O(1) amortised.
type shrinking[V any] struct {
	m    map[string]V
	peak int // the most keys since m was made
}

// minShrink is what a map may keep without being asked: below it, making a new
// one costs more than it gives back.
const minShrink = 1024

func (s *shrinking[V]) len() int { return len(s.m) }

func (s *shrinking[V]) get(key string) (V, bool) {
	v, ok := s.m[key]
	return v, ok
}

func (s *shrinking[V]) put(key string, v V) {
	if s.m == nil {
		s.m = make(map[string]V)
	}
	s.m[key] = v
	s.peak = max(s.peak, len(s.m))
}

// expect makes room for n keys, if nothing is there yet.
func (s *shrinking[V]) expect(n int) {
	if len(s.m) == 0 && n > s.peak {
		s.m, s.peak = make(map[string]V, n), n
	}
}

func (s *shrinking[V]) delete(key string) {
	delete(s.m, key)
	if s.peak <= minShrink || len(s.m)*4 > s.peak {
		return
	}
	// Three quarters of peak were deleted since m was made: they pay for the copy
	// of the rest.
	m := make(map[string]V, len(s.m))
	for k, v := range s.m {
		m[k] = v
	}
	s.m, s.peak = m, len(m)
}
