// Package indexer is the cache: lock-free reads of one consistent state, typed
// secondary indexes, atomic batches.
//
// # Usage
//
// Declare an index once, as a package variable if you like, register it with any
// number of caches, and look things up through it:
//
//	var byOwner = indexer.By("owner", func(p *Pod) string { return p.Owner })
//
//	pods := indexer.New(byOwner)
//	err := pods.Put(object.Item[*Pod]{Key: "a/1", Object: pod})
//	for key, pod := range byOwner.Lookup(pods, "web") { … }
//
// A [View] is what can be read: an [Indexer], where each call answers from the
// newest state, or a [Snapshot], which never changes. Several reads that have to
// agree go to one Snapshot:
//
//	now := pods.Snapshot()
//	n := byOwner.Count(now, "web")
//	pod, ok := now.Get("a/1") // of the same state as n
//
// What is given to the cache belongs to it. Objects are shared with all readers
// and never copied, so change none that was put or got; put a new one.
//
// # Concurrency
//
// Everything may be called from any goroutine, but a [Batch] belongs to the
// function it was given to. A read is one atomic load of an immutable state and
// takes no lock: it never waits for a writer and never holds one up, however
// long an iteration takes. Writers take turns. The function of [Indexer.Write]
// and the index functions run within the writer's turn: they may read the cache,
// but a write to the same cache from inside them waits for itself for ever. A
// loop over an iterator holds nothing, so its body may write.
//
// # Ordering and delivery
//
// Every state is complete: it holds all of a batch or nothing of it, and all
// indexes agree with the objects. A Snapshot, and what All, Sorted, Prefix,
// Lookup and Values return, is the state at the time of the call and stays that,
// also when it is ranged over later or twice. Writes are linearizable together
// with Get, Item, Len and Snapshot: once a write has returned every later read
// sees it, and no read sees less than one that was over before it began.
//
// Keeping a Snapshot, or an iterator, keeps alive what it shows. What did not
// change is shared between all states.
//
// # Costs
//
// With n objects, m of them found, v distinct values of an index, and w keys in a
// batch. No read allocates, but for the iterator itself (two small allocations at
// most, whatever it yields) and for index values that hold pointers other than
// strings, which hashing moves to the heap.
//
//	Snapshot, Len               one atomic load
//	Get, Item                   one hash probe, O(log₃₂ n) to follow; of an older
//	                            Snapshot O(log n) where the key has moved or gone
//	All                         O(n), in memory order: the fastest
//	Sorted, Prefix              O(log n) to the first, then O(log₃₂ n) each
//	Lookup                      O(log₃₂ v) to the first, then O(log₃₂ n) each
//	Count, One                  O(log₃₂ v)
//	Values                      O(v)
//	Put, old key, same values   O(log₃₂ n): copies one path of 32-way nodes, about
//	                            1.3 kB for 100 000 objects, shared by the batch
//	Put, new key; Delete        and O(log n) for the order of the keys, O(log v)
//	                            for each index
//	Write                       the sum of the above; each node is copied once
//	AddIndex                    O(n log v), within one writer's turn
//	Named                       O(m) for string values, else O(v + m)
//	Until                       one call of the condition per wake-up
//
// # Errors
//
// A write is refused as a whole: by what its own function returned, by
// [ErrNoKey], [ErrStale] (a [*StaleError]), an index function's panic
// ([*IndexError]) or a value that is taken in a unique index ([*TakenError]).
// What is wrong with several keys of one batch comes joined; [Refused] tells it
// apart by key, so that the batch can be written again without them.
//
// An index function that panics is contained. One that looks at anything but its
// object, or changes it, is a fault in the program and leaves nonsense behind.
//
// # Debugging
//
// [Indexer.Named] and [Indexer.Indexes] give tools access by name. Looking up an
// index in a view that does not have it panics and names the index: it is a fault
// of the program, which the first test of it finds, and no scan would cover up.
//
// # Testing
//
// An Indexer needs no context, clock or goroutine of its own, and can be used in a
// synctest bubble: waits for a turn, and those of Until, are durable.
package indexer
