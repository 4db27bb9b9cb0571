// Package retry is one set of words for "when to come back". Sources, queues,
// reconcilers and writers all answer with a plain error, and whoever calls them
// reads from it what to do next:
//
//	nil                   done
//	Later(d, why)         nothing failed, look again after d
//	After(err, d)         failed, again after d unless asked for before
//	Permanent(err)        failed, and the same input would fail again
//	any other error       failed, again after a backoff
//
// # Usage
//
// Return one of the words from your own code, or let [Response] find the right
// one for an HTTP answer:
//
//	if err := retry.Response(resp, http.StatusNotFound); err != nil {
//		return err
//	}
//
// A loop of your own reads them with [IsPermanent], [IsLater] and [Delay], and
// asks a [Backoff] for the rest. A [Budget] holds the calls of many goroutines
// to one rate, and stops all of them for a while when one was told to come back
// later.
//
// # Concurrency
//
// A [Backoff] is a plain value without state: copy it, share it, call it from
// any number of goroutines. All methods of [Budget] may be called at the same
// time, also on a nil *Budget, which limits nothing.
//
// # Errors
//
// The words may be wrapped, joined and mixed: the whole tree of an error is
// read. A failure anywhere beats Later, Permanent anywhere beats everything, and
// of several delays the longest holds. Wrapped errors stay visible to errors.Is
// and errors.As.
//
// An error of another library that has a method RetryAfter() time.Duration is
// understood as After.
//
// # Testing
//
// All of time goes through package time, so testing/synctest fakes it. Set
// [Backoff.NoJitter] or [Backoff.Schedule] for delays that are known beforehand.
package retry
