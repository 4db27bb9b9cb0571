package indexer

import (
	"runtime/debug"

	"github.com/homeostat/homeostat/object"
)

// Batch is a write in the making: nobody sees any of it before all of it is in
// force. It belongs to the function that [Indexer.Write] gave it to, and to that
// goroutine; to use it after the function returned is a fault of the program and
// panics.
//
// Only the last word for each key counts: index functions and unique indexes see
// nothing of what was overwritten within the batch.
type Batch[T any] struct {
	base   *Snapshot[T]
	ops    []op[T]
	at     map[string]int // where in ops a key is, once there are more than a few
	faults []error
	over   bool
}

// op is the last word for one key.
type op[T any] struct {
	item object.Item[T]  // the key alone for a delete
	put  bool            // else a delete
	slot uint32          // of old; a new key gets one at the commit
	old  *object.Item[T] // what the base has; nil for a new key
}

// Item gives the item under key as the batch has it by now; false when there is
// none.
func (b *Batch[T]) Item(key string) (object.Item[T], bool) {
	b.use()
	if o := b.op(key); o != nil {
		return o.current()
	}
	return b.base.Item(key)
}

// Put writes item over whatever is under its key, and gives back what that was, as
// the batch had it. An item without a key dooms the batch: Write returns [ErrNoKey].
func (b *Batch[T]) Put(item object.Item[T]) (was object.Item[T], existed bool) {
	b.use()
	if item.Key == "" {
		b.faults = append(b.faults, ErrNoKey)
		return was, false
	}
	o := b.op(item.Key)
	if o == nil {
		o = b.add(item.Key)
	}
	was, existed = o.current()
	o.item, o.put = item, true
	return was, existed
}

// PutIf is Put on the condition that the key has version was; with [object.Any],
// that it is there; with "", that it is not, so that a forgotten version overwrites
// nothing. Otherwise it dooms the batch: Write returns a [*StaleError].
func (b *Batch[T]) PutIf(item object.Item[T], was object.Version) {
	found, exists := b.Item(item.Key)
	held := exists && (was == object.Any || was == found.Version && was != "") || !exists && was == ""
	if !held && item.Key != "" {
		b.faults = append(b.faults, &StaleError{Key: item.Key, Want: was, Found: found.Version, Exists: exists})
		return
	}
	b.Put(item)
}

// Delete removes what is under key, and gives back what that was, as the batch had
// it. If nothing was there, nothing happens.
func (b *Batch[T]) Delete(key string) (was object.Item[T], existed bool) {
	b.use()
	o := b.op(key)
	if o == nil {
		if _, there := b.base.Item(key); !there {
			return was, false
		}
		o = b.add(key)
	}
	was, existed = o.current()
	o.item, o.put = object.Item[T]{Key: key}, false
	return was, existed
}

func (b *Batch[T]) use() {
	if b.over {
		panic("indexer: Batch used after the function it was given to")
	}
}

func (o *op[T]) current() (object.Item[T], bool) {
	if !o.put {
		return object.Item[T]{}, false
	}
	return o.item, true
}

// op is nil for a key that the batch has not written.
func (b *Batch[T]) op(key string) *op[T] {
	if b.at != nil {
		if i, ok := b.at[key]; ok {
			return &b.ops[i]
		}
		return nil
	}
	for i := range b.ops {
		if b.ops[i].item.Key == key {
			return &b.ops[i]
		}
	}
	return nil
}

// add begins with what the base has under key.
func (b *Batch[T]) add(key string) *op[T] {
	n := len(b.ops)
	o := op[T]{item: object.Item[T]{Key: key}}
	if o.slot, o.old = b.base.find(key); o.old != nil {
		o.item, o.put = *o.old, true
	}
	b.ops = append(b.ops, o)
	switch {
	case b.at != nil:
		b.at[key] = n
	case n == few:
		b.at = make(map[string]int, 4*few)
		for i := range b.ops {
			b.at[b.ops[i].item.Key] = i
		}
	}
	return &b.ops[n]
}

// run calls f and contains its panic.
func (b *Batch[T]) run(f func(*Batch[T]) error) (err error) {
	defer func() {
		b.over = true
		if v := recover(); v != nil {
			err = &PanicError{Where: "Write", Value: v, Stack: debug.Stack()}
		}
	}()
	return f(b)
}

// Write makes one write of all that f does to its batch, or none of it: if f
// returns an error, that is returned as it is; if f panics, it is a [*PanicError];
// if the batch is refused, it is what [Refused] takes apart, or several joined.
//
// f runs within the writer's turn, on the caller's goroutine. It may read the
// cache, which shows nothing of the batch, but must not write to it: that would
// wait for f's own end.
func (c *Indexer[T]) Write(f func(*Batch[T]) error) error {
	b := c.begin()
	defer c.end(&b)
	if c.fault != nil {
		return c.fault
	}
	if err := b.run(f); err != nil {
		return err
	}
	return c.commit(&b)
}

// Put writes item over whatever is under its key. It is refused with [ErrNoKey],
// [*IndexError] or [*TakenError], and then changes nothing.
func (c *Indexer[T]) Put(item object.Item[T]) error {
	b := c.begin()
	defer c.end(&b)
	b.Put(item)
	return c.commit(&b)
}

// Delete removes what is under key; it says whether anything was there.
func (c *Indexer[T]) Delete(key string) bool {
	b := c.begin()
	defer c.end(&b)
	_, existed := b.Delete(key)
	return c.commit(&b) == nil && existed
}

// begin takes the turn, end gives it back.
func (c *Indexer[T]) begin() Batch[T] {
	c.turn <- struct{}{}
	return Batch[T]{base: c.state(), ops: c.spare[:0]}
}

const spareOps = 1024 // more are not kept from one write to the next

func (c *Indexer[T]) end(b *Batch[T]) {
	clear(b.ops)
	if c.spare = b.ops; cap(b.ops) > spareOps {
		c.spare = nil
	}
	<-c.turn
}
