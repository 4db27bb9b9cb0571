// Package backendtest is the conformance kit: it tells whether an adapter keeps the
// rules of package reflector, and a store that can be written to those of package
// backend. An adapter that passes is kept up with through every fault.
//
// # Usage
//
// Write a [Harness], and call [Test]:
//
//	func TestConformance(t *testing.T) {
//		backendtest.Test(t, backendtest.Harness[User]{
//			New: func(ctx context.Context) (*backendtest.Fixture[User], error) {
//				db := openEmpty()
//				return &backendtest.Fixture[User]{
//					Source: NewAdapter(db),
//					Write:  db.apply,
//					Cut:    db.dropConnections,
//					Close:  db.Close,
//				}, nil
//			},
//			Object: func(n int) User { return User{Age: n} },
//		})
//	}
//
// [Run] does the same without a testing.T and answers a [Report]: for a bubble of
// testing/synctest, in which a test can't have subtests, and for tests that expect
// failures.
//
// # The harness
//
// Each check gets a store of its own, by Harness.New. With Source and Write alone,
// about two thirds of the checks are made. What else a [Fixture] can have is for
// what goes wrong in practice, and worth the trouble:
//
//   - Write should go past the adapter, so that a change is one that somebody else
//     made. Where the store has transactions it should make them: they show whether
//     a step is split.
//   - Restart: whether cursors of an earlier run mean something else now.
//   - Compact and Forget: whether a history that is too short is noticed, and a
//     delete of which there is no trace.
//   - Cut: whether a broken watch is noticed.
//   - Down: whether a failure looks like an empty store.
//   - Spoil: whether one object that can't be decoded is told as what it is, and what
//     becomes of all others.
//
// T should have at least two fields that Object sets, so that patches of different
// fields can meet, and embed [object.Meta] where the store's objects do: then the rules
// of soft deletion are looked at, too. Equal has to forgive what the store fills in.
//
// # How to read a report
//
// A check is named after what it looks at: "list/cursor", "watch/whole-steps". What
// says what is expected, Rules which rules these are. Where much fails at once,
// begin with the rows of list/ and watch/: most others need them. The checks named
// watch/first-batch and after it come last and also judge what was seen on the way
// in all others: "during list/pages: …".
//
// What the source says it can't do ([reflector.Powers]), what the store answers with
// errors.ErrUnsupported, and what the harness has no function for is skipped, and
// listed in Report.Lacks. A test should compare that list with what is meant to be
// lacking, or a power that is lost by mistake looks like one that never was.
//
// What a source does not promise is not asked for: without positions only the
// states count that it comes to; a watch may merge steps, keep only the last change of a
// key, tell a full state instead of changes, or end at any time; a cursor may always
// be refused as too old unless it is the latest.
//
// # Concurrency
//
// Run and Test make one check after the other. Several may run at once, if the
// harnesses can. Within a check, the adapter is called from several goroutines.
//
// # Duration
//
// What has to come is waited for, Harness.Wait at most, and is there at once in a
// store that keeps the rules; what must not come is listened for during
// Harness.Quiet, about twenty times. With the defaults a store in memory takes three
// to four seconds, two of them for Powers.Progress (Harness.Progress); a store that
// never tells what it should takes Harness.Wait for each failure. Raise Wait for a
// source that polls, and Quiet for one that tells late.
//
// # Errors
//
// An adapter that panics fails the check with the panic. One that ignores its context
// fails it as well: its call is left running, since nothing can end it, and in a
// bubble of testing/synctest the test has to.
//
// # Testing
//
// The kit itself is tried on a store that keeps every rule with any subset of the
// powers, and on the same store with one of many things wrong with it: the first has
// to pass, the second has to fail the check that is made for its fault.
package backendtest
