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
// Give b to what is to be tested, let the weather pass by [Backend.SetPlan] with
// an empty [Plan], and compare with what b holds. Print [Backend.Log] when they
// differ. Between two calls of the tested program, [Backend.Intercept] lets a test
// do something of its own.
//
// Without a plan it keeps every rule of packages reflector and backend, as
// backend/memory does, and has the same powers. A fault never breaks a rule either,
// except that Duplicate tells a batch twice: real sources do all of this.
//
// # Which call is struck
//
// A fault with Call strikes the call with that number; one with OneIn strikes by
// chance, decided by nothing but the plan's seed, the fault's place in the plan,
// the operation, and how many calls of that operation there were since the plan
// was set. So the same plan and the same calls give the same log. Calls of one
// operation do not move the faults of another; two goroutines that call the same
// operation at once share its numbers, in the order in which they come.
//
// Cut, Silence and Duplicate strike within a watch, after a batch: with Call, after
// the first batch of that watch; with OneIn, by chance after each one, decided by
// the watch's number and the batch's.
//
// # Concurrency
//
// A Backend is used by any number of goroutines. Functions given to it run on the
// caller's goroutine, without a lock, and may use the Backend.
//
// # Errors
//
// A plan that can't mean anything (a fault that never strikes, an unknown effect)
// is a mistake in the test: New and SetPlan panic and name it.
//
// # Testing
//
// Inside a testing/synctest bubble, make the Backend in the bubble too: then Delay
// and Silence take the bubble's time.
package fake
