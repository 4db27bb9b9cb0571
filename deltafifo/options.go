package deltafifo

import "time"

// Options are the choices of a [Buffer] or a [FIFO]. nil and the zero value are
// the defaults.
type Options struct {
	// KeepAll turns compaction off: every delta is handed over, those of one key
	// together. Memory then grows with the number of deltas. Defaults to false.
	KeepAll bool
}

// Stats is what is pending, and what compaction spared the consumer.
type Stats struct {
	// Keys and Deltas are pending now. Without KeepAll, Deltas is at most twice
	// Keys.
	Keys, Deltas int
	// Compacted counts the deltas, since the beginning, that will never be handed
	// over: merged into another one, cancelled out, or void from the start.
	Compacted uint64
	// Oldest is since when the key at the front waits; zero when none does.
	Oldest time.Time
}
