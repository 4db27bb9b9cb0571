package fake

// OpenWatches counts the watches that Cut would end.
func (b *Backend[T]) OpenWatches() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.watches)
}
