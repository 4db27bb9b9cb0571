// Package stepped runs histories of everything between a store and the caches and
// handlers of its informers, one step at a time, against a plain model.
//
// It is for this library's own tests. A history is a list of steps: a write, a batch
// that is let through, a list that fails, a watch that is cut, a store that is set
// back … Between two steps everybody stands, so a history is the same each time, and
// everything there is to see is looked at after each. One that goes wrong is printed,
// made short, and can be replayed.
//
// # Usage
//
//	stepped.Run(t, stepped.Config{Seed: 7})
//
// runs the history of a seed. [Find] and [Shrink] are its halves, [Replay] runs a
// history that was printed:
//
//	f := stepped.Replay(t, stepped.Config{}, `
//		client stream+order+prev+progress+resume+ids
//		go c0
//		go c0
//		create k0
//		drop c0     // the batch is lost
//		create k1
//		go c0
//	`)
//
// Config.Store puts another store under test, Config.Source and Config.Handler a
// layer in between.
//
// # How it works
//
// All of a history is in one synctest bubble. Each client is an informer of a gate,
// which is the store, but each call stands still there until the scheduler lets it go
// on: a list or page that is asked for, and its answer; a watch that is opened, and
// each batch; each hint; and each change that a slow handler was told. The scheduler
// does a step, waits until nobody can move (synctest.Wait), and checks.
//
//	world    the scheduler: steps, and what follows each      world.go, do.go, write.go
//	model    what the store has to be                          model.go
//	client   an informer, its gate and its handler            client.go, gate.go, session.go
//	call     one that stands at the gate                      call.go
//	kind     what powers a client's source has                kind.go
//	chooser  draws the steps                                  choose.go
//
// What is checked after every step:
//
//   - the store's own answers: lists, pages, Get, the outcome of writes, and what a
//     watch tells, batch by batch (inspect.go, write.go);
//   - the cache shows a state that the model had at the cache's position. After a
//     fault that the source hides this is not asked until the next full state, only
//     that each key is in a state that it had, and none before one seen earlier (G2);
//   - nothing is deleted that was not (G9); a new object under an old key is never an
//     update (G3); each handler's Old is what it was last given; who has been told all
//     has been told what the cache shows;
//   - WaitFor returns when the write is there, and not before (G7);
//   - the reflector counts no resets, gaps or replays when there were none.
//
// At the end the weather is calm: everything is let through, time passes, and where
// the source has hidden something for good there is one Relist, unless the client is
// audited (or Config.Unrepaired asks for none). Then store, model,
// caches and what the handlers were told are equal, nobody waits any more, every Run
// returns and no goroutine is left.
//
// # Ordering and delivery
//
// The scheduler's choices follow from the seed alone. Nothing may depend on chance:
// backoffs have no jitter, audits and polls begin within the next second whatever theirs
// is, all pauses are whole seconds, and each WaitFor begins at a moment of its own. TestDeterminism holds it to that. What can't be helped (the
// pages that are held back come out of a map) a kind must not show: see drawKind.
//
// # Debugging
//
// A failure says what differs, then what happened: each step, and after it the store,
// and of each client what its reflector is doing, its cache, what its handler was told,
// and what stands at its gate. #7 is the state that the 7th write made; p7 is the
// position after the 7th change (or restore). Steps are numbered as they are in the
// text below, which Replay takes. Paste it into TestRegressions once it is understood.
//
// The failure of a shrunken history may be another than that of the history that was
// found. If the text does not show enough, add a line to describe.
//
// To find out whose fault it is, ask what the source has told: if all the batches and
// pages that went through the gate are right, it is the reflector's or the informer's;
// what the store gave is checked before it stands there. The third possibility is the
// runner: a fault that is not a promise (what a source may do, and nobody can notice)
// must not be possible, see the conditions in client.do.
//
// # Adding a step or a check
//
// A step is a word in ops, a case in one of the do functions that answers false and
// does nothing when it can't be done, and a place in the chooser. If it makes a source
// that lies, say for how long what it has hidden may be seen (client.lied, client.lost).
// A check goes into client.check or inspect; what it compares with goes into the model.
// Then break it: add a layer with that one fault to TestBrokenLayersAreFound.
//
// # Testing
//
// TestG1_… runs twenty thousand histories, a thousand under the race detector, two hundred
// with -short.
package stepped
