// Package fake is backend/memory under a seeded fault plan: a store for tests
// that does on demand, and repeatably, what a real one does on a bad day.
//
// # Usage
//
//	b := fake.New(fake.Plan{Seed: 1, Faults: []fake.Fault{
//		{On: fake.List, Do: fake.Fail, Call: 1},
//		{On: fake.Watch, Do: fake.Cut, OneIn: 10},
//		{On: fake.Writes, Do: fake.FailAfterCommit, OneIn: 20},
//	}}, object.Item[User]{Key: "ann", Object: User{Name: "ann"}})
//
// Give b to what is to be tested: a real informer over the fake is the normal way to
// test whatever reads a cache (see the example). Let the weather pass by
// [Backend.SetPlan] with an empty [Plan], and compare with what b holds. Print
// [Backend.Log] when they differ.
//
// Between two calls of the tested program, [Backend.Intercept] lets a test do
// something of its own; [Backend.PauseAfter] and [Backend.PauseBefore] hold calls
// until the test says go on. [Backend.OnWrite] fills in what a server would,
// [Backend.OnPowers] makes a source that can do less. [Backend.Seed] is strict and
// [Backend.SeedRaw] is not.
//
// # Callers
//
// [Backend.As] is the same store, plan and log under a caller's name. Each caller's
// calls are counted apart, and it is struck as if it were alone: give each
// goroutine of a test a name of its own, and what happens to it does not depend on
// how the goroutines run.
//
// # Which call is struck
//
// A fault with Call strikes one call of each caller: its n-th of all those in On,
// since the plan was set. One with OneIn strikes by chance, decided by nothing but
// the plan's seed, the fault's place in the plan, the operation, the caller's name,
// and the number of this call among the caller's calls of that operation
// ([Call].N). So the same plan and the same calls give the same log: time, and what
// others do, have no part in it. Calls of one operation do not move the faults of
// another. Two goroutines that call the same operation under one name share its
// numbers, in the order in which they come.
//
// Silence, Cut, Duplicate, Reorder, Drop, and Delay after the opening, strike within
// a watch. With OneIn they strike by chance at each batch but mere signs of life,
// whose number is a matter of time, decided by the number of the batch in its watch as
// well. With Call, Silence and Cut strike after the first
// batch of that watch; Duplicate, Reorder and Drop strike its first change. These
// three leave alone what is no change: bookmarks, and the parts of a list that is
// streamed.
//
// # What a consumer can know
//
// Without a plan the fake keeps every rule of packages reflector and backend, as
// backend/memory does, and has the same powers. Most faults break no rule either:
// real stores do all this, and a consumer that keeps to the rules gets over it by
// itself. Some do, and what they leave amiss no consumer can see:
//
//   - Fail, Expire, Delay, Silence, Cut and Conflict are told, or only take time.
//     A silence without end is noticed where Powers.Progress says that there must
//     be signs of life.
//   - FailAfterCommit says that the outcome is unknown; reading says what it was.
//   - Duplicate breaks the rule that a watch tells what came after its cursor. With
//     an order of cursors (Powers.Compare) it is noticed, and dropped; without one,
//     an old state may be shown again.
//   - Drop and Reorder are gaps. The next batch, or bookmark, shows them by its Prev,
//     and a full state repairs them. Of a change that was dropped last nothing is
//     known until then. With Unseen nothing shows a drop; of two batches in the
//     wrong order, the one that comes late is taken for a replay where cursors
//     compare, else it overwrites the newer. What is amiss then stays so until the
//     next write of the same object, a full state, or an audit; a lost delete until
//     one of the last two.
//   - PartialPage is a list that claims to be whole. What is missing in it is taken
//     for deleted, until it is written again or the next full state.
//   - StaleRead is a replica. Powers.StaleLists says that there may be one, while
//     the plan has such a fault. Where cursors compare, a list that is older than
//     what the consumer has shows, and is refused; one that is older than what it
//     has not seen yet does not, nor does Get. The watch after a list catches up.
//   - Restore with NewEpoch shows by the next cursor. Without, it shows for as long
//     as the store has not reached the consumer's cursor again: a reflector believes
//     it after its ResetAfter. Later nothing shows it, and an object whose version
//     was given twice may stay wrong until its next write: not even a full state
//     helps, since equal versions mean equal objects. That is why real stores begin
//     a new epoch, or ought to.
//
// # Concurrency
//
// A Backend is used by any number of goroutines. Functions given to it run on the
// caller's goroutine, without a lock, and may use the Backend. It starts no
// goroutine.
//
// # Errors
//
// A plan that can't mean anything (a fault that never strikes, an unknown effect)
// is a mistake in the test: New, Over and SetPlan panic and name it. What is wrong
// with a seed is a [*SeedError]: Seed and SeedRaw answer it, and after New every call
// does.
//
// # Testing
//
// Inside a testing/synctest bubble, make the Backend in the bubble too: then Delay,
// Silence and pauses take the bubble's time.
package fake
