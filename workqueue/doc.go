// Package workqueue is a queue of keys for those who act on each: a key is handed
// to one worker at a time, and what the work returns decides when the key comes
// back.
//
// # Usage
//
//	q := workqueue.New[string](nil)
//	go q.Run(ctx, 4, func(ctx context.Context, key string) error {
//		return sync(ctx, key) // nil, a retry word, or any other error
//	})
//	q.Add("a", "b")
//
// The ways to want a key are different intents, so they have names of their own:
//
//	Add        now                  merges with whatever is planned
//	AddAfter   after a while        the earliest of several wins, Add absorbs it
//	Remind     then, too            only a run that starts then or later meets it
//	Cancel     not at all
//	Forget     as if it had never failed; what is planned stays
//
// [Queue.Get] and [Queue.Done] are Run by hand. There a key without its Done is
// lost to everybody; Keys(Working) tells which those are, and since when. With
// [Queue.Run] that can't happen: also work that panics, or ends its goroutine,
// gives its key back.
//
// # Why not a channel
//
// A channel holds values, this holds wishes. A key that is wanted a thousand
// times while it waits is one entry; one that is wanted while it is worked on is
// not given to a second worker but noted, and runs again afterwards. So the queue
// is never longer than there are keys, adding never blocks, and work on one key
// needs no lock against itself.
//
//	          Add                    Get                 Done(nil)
//	(nothing) ───▶ due (first in, ───────▶ in work ──────────▶ (nothing)
//	    │          first out)              │ │ ▲ │
//	    │ AddAfter   ▲  ▲                  │ │ └─┘ Add: noted, due again at Done
//	    │ Remind     │  │ its time         │ │
//	    └──────▶ delayed ◀─────────────────┘ └─────────▶ parked
//	                 error, Later, After        Permanent  │
//	                 ▲       Add, AddAfter, Remind, Forget │
//	                 └──────────────── (or due) ───────────┘
//
// # Concurrency
//
// All methods may be called at the same time, also from work. There is one lock;
// nothing of the user's is called under it, and nothing waits under it. The queue
// has no goroutine of its own: one timer, however many keys wait, runs only while
// there is something to wait for.
//
// # Ordering and delivery
//
// Due keys are handed out first in, first out. A delayed key joins at the end
// when its time comes; of several with the same time, the one planned first. The
// promises, each kept by a test:
//
//   - A key is in work at most once at a time.
//   - An add is followed by a run that starts after it, unless Cancel, Drain or
//     Abort says so, and those name what they drop. Any number of adds before
//     that run starts are met by it.
//   - A reminder is followed by a run that starts at its time or later.
//   - Nothing is kept of a key that is neither wanted, nor in work, nor parked.
//
// A key that fails waits for its backoff, but an add is a new fact and makes it
// due at once: while it waits always, and while it is worked on once in a row
// (see [Queue.Done]).
//
// There are two ends. [Queue.Drain] lets finish what is queued and in work,
// [Queue.Abort] lets nobody have another key. Both refuse further adds and return
// what is left over. The end of Run's context is neither: the queue stays as it
// is, for another Run or for one of the two.
//
// # Errors
//
// Faulty options, and types of key that can't be compared by value, come out of
// Get and Run and match [ErrInvalidOptions]. Get ends in [ErrClosed] or the cause
// of its context's end. Drain may end in a [*HeldError]. An outcome that is a
// [*PanicError] stands for a panic.
//
// # Debugging
//
// [Queue.Stats] counts, [Queue.Explain] tells all about one key, [Queue.Keys]
// lists them by state. Times of the kind "since when" may be a second early, for
// the clock is not read at each operation; planned times are exact.
//
// # Testing
//
// All of time goes through package time, so testing/synctest fakes it. Give
// Options.Backoff a Schedule, or NoJitter, for delays that are known beforehand.
package workqueue
