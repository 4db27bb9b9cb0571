// Package reconcile is the loop: something changed, look at the whole, act, come
// back.
//
// # Usage
//
// A [Controller] calls a [Func] for each key of an informer that something
// happened to. The Func gets no event: it reads what is wanted and what is there
// from caches, does what is missing, and says by its error when to look again.
//
//	root, err := os.OpenRoot("homes") // whatever a key says, nothing outside is touched
//	…
//	users := informer.New(reflector.Poll(listUsers, User.Key, nil), nil)
//	homes := reconcile.New("homes", users, func(ctx context.Context, req reconcile.Request[User]) error {
//		if _, exists := req.Object(); !exists {
//			return root.RemoveAll(req.Key)
//		}
//		return root.MkdirAll(req.Key, 0o755)
//	}, &reconcile.Options{Logger: slog.Default()})
//	err = reconcile.Run(ctx, homes)
//
// Without a Logger nothing is logged: what a Func returns is then to be seen in
// Explain, and counted in Status, and nowhere else.
//
// [Run] finds the informers that its controllers need and runs them too; [Group]
// is the same with choices. [Watch] triggers by objects of other types,
// [Controller.Trigger] by hand, [Options].Every by time. [Client] is an informer
// and a backend in one, for what a Func writes to. [Finalize] runs a clean-up
// before an object goes.
//
// # What you return
//
//	returned                      runs again                              counted in
//	nil                           when something changes                  Done
//	retry.Later(d, why)           after d                                 Later
//	retry.After(err, d)           after d                                 Failed, Failures
//	an error                      by Options.Backoff                      Failed, Failures
//	  after Options.Timeout       the same                                TimedOut, Failures
//	a panic                       by Options.Backoff                      Panicked, Failures
//	backend.ErrConflict           once the cache has moved                Conflict
//	  the next one in a row       by Options.Backoff                      Conflict, Failures
//	retry.Permanent(err)          when something changes                  Parked, Failures
//	an error, when cut short      after a restart                         Interrupted
//	  by the controller's stop
//
// In every row, whatever triggers the key afterwards makes it run at once, and what
// is no failure sets the backoff back to its first step. Of several errors in one
// (errors.Join, or more than one %w) a failure wins over a Later, the longest delay
// that any of them names holds, one Permanent parks the whole, and it is a conflict
// only when all of it is. [Decide] is this rule as a function.
//
// A run's own writes are changes like any others: when the run has written an object
// that triggers its key (its own, or one of a Watch), the key runs once more, with
// what it wrote before its eyes, and finds nothing left to do. That holds for a
// tracked backend too, and it comes before the delay of a Later and revives what is
// parked. So a Func must come to rest: one that writes something else each time (a
// heartbeat, the time of the last look, a counter of attempts) triggers itself for
// ever, as fast as the store can write, whatever it returns. Write only what differs
// from what is there:
//
//	if want := status(now); !want.Equal(have.Status) {
//		// write
//	}
//
// and where something has to change each time, keep its changes from triggering with
// Only, and ask for the next look by retry.Later or Options.Every:
//
//	c.Only(func(ch informer.Change[User]) bool {
//		return ch.Type != informer.Updated || ch.Old.Spec != ch.New.Spec
//	})
//
// After a conflict that a tracked backend told the version of, the key is held for
// at most a second until its cache has that version; after any other it waits for
// the first step of the backoff, or for its object to change.
//
// # Concurrency
//
// All functions and methods may be called from any goroutine. [Watch],
// [WatchFunc], Only and Reads belong before Run and panic after it. A Func is
// called by Options.Workers goroutines at once, never twice at once for a key; a
// change during a run makes another run after it. Objects from caches are shared
// and must not be changed.
//
// Locks: a controller's and a run's are never held while user code runs, while
// anything is waited for, or while the queue's or an informer's is taken.
//
// # Ordering and delivery
//
// The queue remembers that a key is due, not how often: any number of triggers
// before a run are one run, whose [Request] tells their causes and counts. Keys
// are taken in the order in which they became due. No worker starts before all
// informers that the controller needs are synced.
//
// A run sees what the runs of its key before it wrote, whatever the type of the
// object, when they wrote with their own context through a tracked backend (see
// [Client]). For that the key, and only that key, is held after its run until the
// informers' caches provably have its writes: by versions, or by a list begun
// after the write where versions don't tell. What is not proven 30 s after the run
// is released all the same, with a warning in the log, in Explain and in
// Counts.Unproven. (An informer's own backoff may be longer than that: shorten
// informer.Options.Backoff where acting on an old cache is worse than calling a
// failing source more often.) Where the source's lists may be stale (Powers.StaleLists), the
// barriers in Explain say so.
//
// When Run ends, keys that are waiting are forgotten: what is in a source is found
// again by the next process. What went from it in the meantime is not: trigger what
// you find in the world at the start, or use Finalize.
//
// # Errors
//
// Run answers the sentinels of this package, joined where there are several, and
// *[StillRunning]. What Funcs return goes to the queue, the log and Explain, and
// never ends a controller. Panics of all functions given to this package are
// caught and reported as *[PanicError] with a stack.
//
// # Debugging
//
// Explain(key) tells what a key is doing, why, when next, what it waits for, and
// how its last runs went; it prints as text and marshals as JSON. Status counts
// outcomes and lists the sources of triggers. The log has single runs at Debug,
// failed ones at Warn, panics at Error.
//
// # Testing
//
// Package fake is a backend that fails on demand; with testing/synctest a test of
// hours takes milliseconds. A zero Request with a Key stands for a key that is
// gone.
package reconcile
