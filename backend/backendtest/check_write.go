package backendtest

import (
	"errors"
	"fmt"
	"time"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/object"
)

func writeChecks[T any]() []check[T] {
	return []check[T]{
		{Check{"write/no-version", []string{"backend 1"}, "a write without a version is ErrNoVersion, before anything else is looked at"}, writeNoVersion[T]},
		{Check{"write/preconditions", []string{"backend 2"}, "a write under another version than the object's is ErrConflict, and of many under the same one only one is done"}, writePreconditions[T]},
		{Check{"write/any-waits-its-turn", []string{"backend 3"}, "writes under object.Any never fail because of each other"}, writeAny[T]},
		{Check{"write/create-exists", []string{"backend 4"}, "Create is refused without a key and where there is an object, the other writes where there is none"}, writeCreate[T]},
		{Check{"write/answers", []string{"backend 5"}, "every write answers the object as it is stored"}, writeAnswers[T]},
		{Check{"write/ids", []string{"backend 6"}, "an ID is an object's own for as long as it lives, and an Update with another one is ErrConflict"}, writeIDs[T]},
		{Check{"write/delete-version", []string{"backend 7"}, "Delete answers the last state, under a version that it never had"}, writeDelete[T]},
	}
}

func writeNoVersion[T any](k *kit[T]) {
	w := k.writer()
	item := w.new(k.h.Key(0))
	w.refuses("an object that is there", item, "", backend.ErrNoVersion)
	none := item
	none.Key = k.h.Key(1)
	for op, write := range w.writes(none, "") {
		if _, err := write(); w.supports(op, err) && !errors.Is(err, backend.ErrNoVersion) {
			k.fail("%s of nothing, without a version, is not ErrNoVersion but: %w", op, orNil(err))
		}
	}
	w.absent(none.Key, "writes without a version")
}

func writePreconditions[T any](k *kit[T]) {
	w := k.writer()
	old := w.new(k.h.Key(0))
	k.need("Versions", old.Version != "")
	now, err := w.update(w.other(old, old.Version))
	now = w.can("Update", now, err)
	for _, v := range []object.Version{old.Version, "backendtest-no-such-version"} {
		stale := now
		for op, write := range w.writes(stale, v) {
			if _, err := write(); w.supports(op, err) && !errors.Is(err, backend.ErrConflict) {
				k.fail("%s under version %q of an object that has %q is not ErrConflict but: %w", op, v, now.Version, orNil(err))
			}
		}
		w.still(now, "a write under another version")
	}
	p, _ := w.anyPatch(now)
	if item, err := w.patch(now.Key, p, now.Version); w.supports("Patch", err) {
		k.must(err)
		now = item
	}
	if _, err := w.delete(now.Key, now.Version); w.supports("Delete", err) {
		k.must(err)
		w.absent(now.Key, "a delete")
	}
	for next := k.rounds(); next(); {
		w.manyUnderOneVersion()
		w.kindsUnderOneVersion()
	}
}

// rounds says as often as a race is worth another try: what lies between a look and a
// write may be short.
func (k *kit[T]) rounds() (next func() bool) {
	const most = 50
	n, end := 0, nowPlus(5*k.h.Quiet)
	return func() bool {
		n++
		return n == 1 || n <= most && time.Now().Before(end)
	}
}

// manyUnderOneVersion writes under one version from several goroutines at once.
func (w *writer[T]) manyUnderOneVersion() {
	k := w.st.k
	for _, op := range []string{"Update", "Patch", "Delete"} {
		w.raced++
		item := w.new(k.h.Key(100 + w.raced))
		errs := many(8, func(int) error {
			_, err := w.writes(item, item.Version)[op]()
			return err
		})
		done := 0
		for _, err := range errs {
			gone := op == "Delete" && errors.Is(err, backend.ErrNotFound)
			switch {
			case err == nil:
				done++
			case errors.Is(err, errors.ErrUnsupported):
				done = 1
			case !errors.Is(err, backend.ErrConflict) && !gone:
				k.fail("%s, of many at once under one version: %w", op, err)
			}
		}
		if done != 1 {
			k.fail("%d of %d times %s at once under one version were done", done, len(errs), op)
		}
	}
}

// many calls f on n goroutines at once.
func many(n int, f func(i int) error) []error {
	type answer struct {
		i   int
		err error
	}
	answers := make(chan answer, n)
	start := make(chan struct{})
	for i := range n {
		go func() {
			<-start
			a := answer{i: i, err: errPanic}
			defer func() {
				if v := recover(); v != nil {
					a.err = caught(v)
				}
				answers <- a
			}()
			a.err = f(i)
		}()
	}
	close(start)
	all := make([]error, n)
	for range n {
		a := <-answers
		all[a.i] = a.err
	}
	return all
}

func writeAny[T any](k *kit[T]) {
	w := k.writer()
	for next := k.rounds(); next(); {
		w.raced++
		w.manyUnderAny(w.new(k.h.Key(100 + w.raced)))
		w.deleteAmongAny()
	}
}

// manyUnderAny writes unconditionally from several goroutines at once.
func (w *writer[T]) manyUnderAny(item object.Item[T]) {
	k := w.st.k
	p, _ := w.anyPatch(item)
	const writers = 12
	versions := make([]object.Version, writers)
	errs := many(writers, func(i int) (err error) {
		got := item
		if i%3 == 2 {
			got, err = w.patch(item.Key, p, object.Any)
		} else {
			other := w.other(item, object.Any)
			if i%3 == 1 {
				other.ID = ""
			}
			got, err = w.update(other)
			versions[i] = got.Version
		}
		return err
	})
	for i, err := range errs {
		op := []string{"Update", "Update", "Patch"}[i%3]
		if w.supports(op, err) && err != nil {
			k.fail("%s under object.Any, while others write too: %w", op, err)
		}
	}
	seen := map[object.Version]bool{"": true}
	for _, v := range versions {
		if seen[v] && v != "" {
			k.fail("two Updates answered version %q", v)
		}
		seen[v] = true
	}
	deleted := 0
	for _, err := range many(6, func(int) error { _, err := w.delete(item.Key, object.Any); return err }) {
		switch {
		case !w.supports("Delete", err):
			return
		case err == nil:
			deleted++
		case !errors.Is(err, backend.ErrNotFound):
			k.fail("Delete under object.Any, while others delete too: %w", err)
		}
	}
	if deleted != 1 {
		k.fail("one object was deleted %d times at once", deleted)
	}
	created := 0
	for _, err := range many(6, func(int) error { _, err := w.create(item.Key, k.object()); return err }) {
		switch {
		case err == nil:
			created++
		case !errors.Is(err, backend.ErrExists):
			k.fail("Create, while others create too: %w", err)
		}
	}
	if created != 1 {
		k.fail("one key was created %d times at once", created)
	}
}

func writeCreate[T any](k *kit[T]) {
	w := k.writer()
	before := w.all(object.Item[T]{})
	if _, err := w.create("", k.object()); !errors.Is(err, backend.ErrNoKey) {
		if !w.supports("Create", err) {
			k.skip("Create")
		}
		k.fail("Create without a key is not ErrNoKey but: %w", orNil(err))
	}
	if now := w.all(object.Item[T]{}); len(now) != len(before) {
		k.fail("after a Create without a key there are %d objects, were %d", len(now), len(before))
	}
	item := w.new(k.h.Key(0))
	if _, err := w.create(item.Key, k.object()); !errors.Is(err, backend.ErrExists) {
		k.fail("Create where there is an object is not ErrExists but: %w", orNil(err))
	}
	w.still(item, "a Create where there is an object")
	none := item
	none.Key = k.h.Key(1)
	w.absent(none.Key, "nothing")
	for _, v := range []object.Version{object.Any, item.Version, "1"} {
		if v == "" {
			continue
		}
		for op, write := range w.writes(none, v) {
			if _, err := write(); w.supports(op, err) && !errors.Is(err, backend.ErrNotFound) {
				k.fail("%s of nothing, under version %q, is not ErrNotFound but: %w", op, v, orNil(err))
			}
		}
	}
	w.absent(none.Key, "writes that found nothing")
}

func writeAnswers[T any](k *kit[T]) {
	w := k.writer()
	key := k.h.Key(0)
	stored := func(op string, item object.Item[T], err error, want T) object.Item[T] {
		k.must(err)
		if item.Key != key || !k.h.Equal(item.Object, want) {
			k.fail("%s answers another object than was written (key %q, wrote %q)", op, item.Key, key)
		}
		k.must(k.ifStale(w.st, func() error {
			if now, err := w.get(key); err != nil || !w.same(now, item) {
				return fmt.Errorf("%s answered version %q, ID %q; Get then gives version %q, ID %q, or another object; error: %v", op, item.Version, item.ID, now.Version, now.ID, err)
			}
			return nil
		}))
		return item
	}
	obj := k.object()
	item, err := w.create(key, obj)
	w.can("Create", item, err)
	item = stored("Create", item, err, obj)
	for _, any := range []bool{false, true} {
		v := item.Version
		if any || v == "" {
			v = object.Any
		}
		next := w.other(item, v)
		if got, err := w.update(next); w.supports("Update", err) {
			item = stored("Update", got, err, next.Object)
			if item.Version == next.Version && item.Version != "" {
				k.fail("Update answers version %q, under which it was made", item.Version)
			}
		}
		p, to := w.anyPatch(item)
		if got, err := w.patch(key, p, object.Any); w.supports("Patch", err) {
			item = stored("Patch", got, err, to)
		}
	}
}

func writeIDs[T any](k *kit[T]) {
	w := k.writer()
	first := w.new(k.h.Key(0))
	item, err := w.update(w.other(first, object.Any))
	if w.supports("Update", err) {
		k.must(err)
		if item.ID != first.ID {
			k.fail("an Update changes the ID from %q to %q", first.ID, item.ID)
		}
	}
	p, _ := w.anyPatch(first)
	item, err = w.patch(first.Key, p, object.Any)
	if w.supports("Patch", err) {
		k.must(err)
		if item.ID != first.ID {
			k.fail("a Patch changes the ID from %q to %q", first.ID, item.ID)
		}
	}
	if first.ID == "" {
		// Without IDs, one that is named is ignored.
		named := w.other(first, object.Any)
		named.ID = "backendtest-no-such-id"
		if _, err := w.update(named); w.supports("Update", err) {
			k.must(err)
		}
		k.skip("IDs")
	}
	gone, err := w.delete(first.Key, object.Any)
	w.can("Delete", gone, err)
	second := w.new(first.Key)
	if second.ID == first.ID {
		k.fail("an object that was deleted and created again has the same ID, %q", first.ID)
	}
	for _, v := range []object.Version{object.Any, second.Version} {
		if v == "" {
			continue
		}
		stale := w.other(first, v)
		if _, err := w.update(stale); w.supports("Update", err) && !errors.Is(err, backend.ErrConflict) {
			k.fail("an Update under version %q that is meant for the object before, ID %q, is not ErrConflict but: %w", v, first.ID, orNil(err))
		}
	}
	w.still(second, "an Update that was meant for the object before")
}

func writeDelete[T any](k *kit[T]) {
	w := k.writer()
	for i := range 2 {
		item := w.new(k.h.Key(0))
		had := []object.Version{item.Version}
		for range 2 {
			got, err := w.update(w.other(item, object.Any))
			if w.supports("Update", err) {
				k.must(err)
				item = got
				had = append(had, item.Version)
			}
		}
		v := item.Version
		if i == 0 || v == "" {
			v = object.Any
		}
		gone, err := w.delete(item.Key, v)
		w.can("Delete", gone, err)
		if gone.Key != item.Key || gone.ID != item.ID || !k.h.Equal(gone.Object, item.Object) {
			k.fail("Delete does not answer the last state, key %q, ID %q, but key %q, ID %q, or another object", item.Key, item.ID, gone.Key, gone.ID)
		}
		for _, v := range had {
			if gone.Version == v && v != "" {
				k.fail("Delete answers version %q, which the object had while it was there", v)
			}
		}
		w.absent(item.Key, "a delete")
	}
}
