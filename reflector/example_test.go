package reflector_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// users is a sink: a map, and a print of each change.
type users struct {
	byName map[string]string
	done   func()
}

func (u *users) Apply(b reflector.Batch[string], _ object.Cause) error {
	for _, e := range b.Events {
		if e.Op == reflector.OpDelete {
			delete(u.byName, e.Key)
			continue
		}
		u.byName[e.Key] = e.Object
	}
	return nil
}

func (u *users) Begin(why object.Cause) reflector.Relist[string] {
	return &next{users: u, why: why, byName: map[string]string{}}
}

// next is the full state that is on its way.
type next struct {
	users  *users
	why    object.Cause
	byName map[string]string
}

func (n *next) Stage(items []object.Item[string]) error {
	for _, it := range items {
		n.byName[it.Key] = it.Object
	}
	return nil
}

func (n *next) Unstage(key string) { delete(n.byName, key) }

// Keep: what cannot be read is kept as it was.
func (n *next) Keep(faults []reflector.Fault) {
	for _, f := range faults {
		if old, ok := n.users.byName[f.Key]; ok {
			n.byName[f.Key] = old
		}
	}
}

// Distrust: it trusts nothing in any case.
func (n *next) Distrust() {}

// StageKeys and Diff: this sink is never audited, and holds nothing.
func (n *next) StageKeys([]object.Item[string]) error { return nil }
func (n *next) Diff() reflector.Diff                  { return reflector.Diff{Of: len(n.users.byName)} }

func (n *next) Commit(reflector.Cursor) error {
	n.users.byName = n.byName
	fmt.Println(n.why, slices.Sorted(maps.Keys(n.byName)))
	if n.why == object.Relist {
		n.users.done()
	}
	return nil
}

func (n *next) Unchanged(reflector.Cursor) error { return nil }

func (n *next) Abort() {}

// Any function that lists is a source.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	lists := [][]string{{"ann", "bob"}, {"bob", "cleo"}}
	list := func(context.Context) ([]string, error) {
		now := lists[0]
		lists = lists[min(1, len(lists)-1):]
		return now, nil
	}
	name := func(s string) string { return s }
	source := reflector.Poll(list, name, &reflector.PollOptions{Every: 10 * time.Millisecond})

	r := reflector.New(source, &users{done: cancel}, nil)
	if err := r.Run(ctx); err != nil {
		fmt.Println(err)
	}
	fmt.Println(r.Status().State)

	// Output:
	// initial [ann bob]
	// relist [bob cleo]
	// stopped
}
