package reflector

import "sync"

// bell carries calls of Relist to the goroutine of Run: many become one, and
// none is lost, since a ring stays until a full state begins.
type bell struct {
	mu     sync.Mutex
	rang   bool
	reason string
	end    func() // ends what a ring may end; does nothing once that has ended
}

func (b *bell) ring(reason string) {
	b.mu.Lock()
	if !b.rang {
		b.rang, b.reason = true, reason
	}
	end := b.end
	b.end = nil
	b.mu.Unlock()
	if end != nil {
		end()
	}
}

// arm gives ring something to end: a session, a wait. It does nothing and is
// false when the bell rang already.
func (b *bell) arm(end func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rang {
		return false
	}
	b.end = end
	return true
}

func (b *bell) ringing() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rang
}

// answer is called right before a full state begins: who rang before gets it.
func (b *bell) answer() (reason string, rang bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	reason, rang = b.reason, b.rang
	b.reason, b.rang = "", false
	return reason, rang
}
