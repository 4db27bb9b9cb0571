package indexer

import (
	"slices"

	"github.com/homeostat/homeostat/object"
)

// draft is the next state while it is being made. It is thrown away if the write
// is refused: until it is published nothing that a reader could see was touched.
type draft[T any] struct {
	*Snapshot[T]
	base  *Snapshot[T]
	given int // slots given out
	wrote bool
}

func (s *Snapshot[T]) draft() *draft[T] {
	next := *s
	next.seq++
	return &draft[T]{Snapshot: &next, base: s}
}

// commit makes the next state of base and b, and publishes it.
func (c *Indexer[T]) commit(b *Batch[T]) error {
	if c.fault != nil {
		return c.fault
	}
	if b.faults != nil {
		return join(b.faults)
	}
	d := b.base.draft()
	var faults []*IndexError
	for i := range b.ops {
		o := &b.ops[i]
		if o.put && o.old == nil {
			o.slot = c.vacant(d)
		}
		if fault := d.write(o); fault != nil {
			faults = blame(faults, fault, o.item.Key)
		}
	}
	if err := d.settle(faults); err != nil || !d.wrote {
		return err
	}
	c.publish(d, b.ops)
	return nil
}

// vacant gives out a slot. It is taken when d is published.
func (c *Indexer[T]) vacant(d *draft[T]) uint32 {
	n := d.given
	d.given++
	if n < len(c.free) {
		return c.free[len(c.free)-1-n]
	}
	return c.used + uint32(n-len(c.free))
}

// write brings one op into the objects and all indexes, or says which index failed.
func (d *draft[T]) write(o *op[T]) *IndexError {
	switch {
	case o.put:
		item := new(object.Item[T])
		*item = o.item
		if o.old == nil {
			d.keys.set(d.seq, item.Key, o.slot)
		}
		d.items.set(d.seq, o.slot, item)
	case o.old != nil:
		d.keys.del(d.seq, o.item.Key)
		d.items.set(d.seq, o.slot, nil)
	default:
		return nil // put and deleted within the batch
	}
	d.wrote = true
	for i, col := range d.columns {
		next, fault := col, (*IndexError)(nil)
		if o.put {
			next, fault = col.put(d.seq, o.slot, o.item.Object)
		} else {
			next = col.drop(d.seq, o.slot)
		}
		if fault != nil {
			return fault
		}
		if next != col {
			d.setColumn(i, next)
		}
	}
	return nil
}

func (d *draft[T]) setColumn(i int, c column[T]) {
	if &d.columns[0] == &d.base.columns[0] {
		d.columns = slices.Clone(d.columns)
	}
	d.columns[i] = c
}

func blame(faults []*IndexError, fault *IndexError, key string) []*IndexError {
	fault.Key = key
	if len(faults) >= stacksPerWrite {
		fault.Stack = nil
	}
	return append(faults, fault)
}

// settle is the verdict on a draft. With index faults it is these alone: who would
// be refused a unique value without the faulty objects is not known. For the same
// reason a refusal in favour of an object that is itself refused is left out.
func (d *draft[T]) settle(faults []*IndexError) error {
	var errs []error
	for _, fault := range faults {
		errs = append(errs, fault)
	}
	if errs != nil {
		return join(errs)
	}
	var taken []*TakenError
	for _, col := range d.columns {
		taken = append(taken, col.settle(&d.items)...)
	}
	if taken == nil {
		return nil
	}
	refused := make(map[string]bool, len(taken))
	for _, t := range taken {
		refused[t.Key] = true
	}
	for _, t := range taken {
		if !refused[t.Holder] {
			errs = append(errs, t)
		}
	}
	if errs == nil { // they refuse each other
		for _, t := range taken {
			errs = append(errs, t)
		}
	}
	return join(errs)
}

// publish puts d in force. The order of the steps is what Snapshot.find relies on.
func (c *Indexer[T]) publish(d *draft[T], ops []op[T]) {
	reused := min(d.given, len(c.free))
	c.free = c.free[:len(c.free)-reused]
	c.used += uint32(d.given - reused)
	for i := range ops {
		if o := &ops[i]; o.put && o.old == nil {
			c.points.insert(c.hash(o.item.Key), o.slot)
		}
	}
	c.head.Store(d.Snapshot)
	for i := range ops {
		if o := &ops[i]; !o.put && o.old != nil {
			c.points.remove(c.hash(o.item.Key), o.slot)
			c.free = append(c.free, o.slot)
		}
	}
	if d.Len() == 0 {
		c.free, c.used = nil, 0
	}
	c.wake()
}

// AddIndex registers x and fills it from all objects. Readers see it whole or not
// at all; writers wait for it. The same handle again does nothing; another one of
// the same name is refused with [ErrNameTaken], an unusable one with
// [ErrInvalidIndex]. If the function panics ([*IndexError]) or two objects have one
// value in a unique index ([*TakenError]), the error names them all, and x is not
// registered.
func (c *Indexer[T]) AddIndex(x Indexed[T]) error {
	b := c.begin()
	defer c.end(&b)
	if c.fault != nil {
		return c.fault
	}
	if known, err := b.base.registered(x); known || err != nil {
		return err
	}
	d := b.base.draft()
	col := x.column(c.seed)
	var faults []*IndexError
	d.items.walk(func(slot uint32, item *object.Item[T]) bool {
		next, fault := col.put(d.seq, slot, item.Object)
		if col = next; fault != nil {
			faults = blame(faults, fault, item.Key)
		}
		return true
	})
	d.columns = append(slices.Clip(d.columns), col)
	if err := d.settle(faults); err != nil {
		return err
	}
	c.publish(d, nil)
	return nil
}
