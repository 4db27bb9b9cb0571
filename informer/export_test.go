package informer

import (
	"github.com/homeostat/homeostat/deltafifo"
	"github.com/homeostat/homeostat/reflector"
)

// SinkOf is the informer as its reflector sees it, to be driven by hand.
func SinkOf[T any](i *Informer[T]) reflector.Sink[T] { return sink[T]{i} }

// Queued is what is pending for a handler.
func Queued(s *Subscription) deltafifo.Stats { return s.queued() }

// Staged is how many changes a full state keeps.
func Staged[T any](r reflector.Relist[T]) int { return len(r.(*relist[T]).changed) }

// CancelAll cancels the subscriptions of all handlers, also of those whose
// AddHandler has not returned yet.
func CancelAll[T any](i *Informer[T]) {
	i.mu.Lock()
	handlers := append([]*handler[T](nil), i.handlers...)
	i.mu.Unlock()
	for _, h := range handlers {
		h.Cancel()
	}
}
