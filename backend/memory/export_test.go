package memory

// States counts the states that are kept ready.
func (s *Store[T]) States() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.states)
}
