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
