package backendtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/patch"
	"github.com/homeostat/homeostat/reflector"
)

func patchChecks[T any]() []check[T] {
	return []check[T]{
		{Check{"write/patch-in-place", []string{"backend 8", "backend 3"}, "patches of different fields at once, under object.Any, are all done"}, patchInPlace[T]},
		{Check{"write/patch-one-step", []string{"backend 8", "backend 2"}, "what is written while a patch is on its way is not lost"}, patchOneStep[T]},
		{Check{"write/patch-nothing", []string{"backend 8"}, "a patch that changes nothing writes nothing and answers the object as it is"}, patchNothing[T]},
	}
}

// fields splits a merge patch into one for each field that it changes.
func fields(doc []byte) [][]byte {
	var members map[string]json.RawMessage
	if json.Unmarshal(doc, &members) != nil || len(members) == 0 {
		return [][]byte{doc}
	}
	var all [][]byte
	for _, name := range slices.Sorted(maps.Keys(members)) {
		quoted, _ := json.Marshal(name) // of a string
		for _, inner := range fields(members[name]) {
			all = append(all, fmt.Appendf(nil, "{%s:%s}", quoted, inner))
		}
	}
	return all
}

// byField are the patches that lead from one object to another together.
func (w *writer[T]) byField(from, to T) []patch.Patch {
	k := w.st.k
	whole, err := patch.Between(from, to)
	k.must(err)
	doc, err := whole.MarshalJSON()
	k.must(err)
	var all []patch.Patch
	for _, field := range fields(doc) {
		p, err := patch.Merge(field)
		k.must(err)
		all = append(all, p)
	}
	return all
}

func patchInPlace[T any](k *kit[T]) {
	w := k.writer()
	item := w.new(k.h.Key(0))
	obj := item.Object
	for range 6 {
		to := k.object()
		w.patchAll(item.Key, w.byField(obj, to))
		k.must(k.ifStale(w.st, func() error {
			now, err := w.get(item.Key)
			if err == nil && !k.h.Equal(now.Object, to) {
				err = errors.New("patches of different fields at once were not all done")
			}
			obj = now.Object
			return err
		}))
	}
	if object.MetaOf(&obj) == nil {
		return
	}
	// Labels are fields of which there can be any number.
	var labels []patch.Patch
	for i := range 20 {
		labelled, err := cloned(obj)
		k.must(err)
		m := object.MetaOf(&labelled)
		m.Labels = map[string]string{fmt.Sprintf("label-%d", i): "set"}
		maps.Copy(m.Labels, object.MetaOf(&obj).Labels)
		p, err := patch.Between(obj, labelled)
		k.must(err)
		labels = append(labels, p)
	}
	want := len(object.MetaOf(&obj).Labels) + len(labels)
	w.patchAll(item.Key, labels)
	k.must(k.ifStale(w.st, func() error {
		now, err := w.get(item.Key)
		if err != nil {
			return err
		}
		if m := object.MetaOf(&now.Object); m == nil || len(m.Labels) != want {
			return fmt.Errorf("of %d patches at once, each of another label, not all were done", len(labels))
		}
		return nil
	}))
}

// patchAll patches with all at once, under object.Any.
func (w *writer[T]) patchAll(key string, all []patch.Patch) {
	errs := many(len(all), func(i int) error {
		_, err := w.patch(key, all[i], object.Any)
		return err
	})
	for _, err := range errs {
		w.can("Patch", object.Item[T]{}, err)
	}
}

// cloned is a copy of obj, by way of JSON.
func cloned[T any](obj T) (T, error) {
	var out T
	data, err := json.Marshal(obj)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	return out, err
}

// meddling is a patch that does something when it is first looked into.
type meddling struct {
	patch.Patch
	once sync.Once
	do   func()
}

func (m *meddling) Apply(doc []byte) ([]byte, error) {
	m.once.Do(m.do)
	return m.Patch.Apply(doc)
}

func (m *meddling) MarshalJSON() ([]byte, error) {
	m.once.Do(m.do)
	return m.Patch.MarshalJSON()
}

func patchOneStep[T any](k *kit[T]) {
	w := k.writer()
	item := w.new(k.h.Key(0))
	item, err := w.patch(item.Key, w.byField(item.Object, k.object())[0], object.Any)
	w.can("Patch", item, err)
	for _, named := range []bool{false, true} {
		if named {
			got, err := w.update(w.other(item, object.Any))
			item = w.can("Update", got, err)
		}
		v := object.Any
		if named {
			if v = item.Version; v == "" {
				continue
			}
		}
		between := k.object()
		field := w.byField(item.Object, k.object())[0]
		patched, err := patch.Into(field, between)
		k.must(err)
		done := make(chan error, 1)
		_, err = w.patch(item.Key, &meddling{Patch: field, do: func() {
			written := make(chan struct{})
			go func() {
				defer close(written)
				_, err := w.update(object.Item[T]{Key: item.Key, Version: object.Any, Object: between})
				done <- err
			}()
			select {
			case <-written:
			case <-after(k.h.Quiet): // the store lets nobody write meanwhile
			}
		}}, v)
		select {
		case meanwhile := <-done:
			if !w.supports("Update", meanwhile) {
				return
			}
			k.must(meanwhile)
		case <-after(2 * k.h.Wait):
			k.fail("Patch never looked at the patch, or a write under object.Any never ended")
		}
		if err != nil && (v == object.Any || !errors.Is(err, backend.ErrConflict)) {
			k.must(err)
		}
		refused := err != nil
		k.must(k.ifStale(w.st, func() error {
			now, err := w.get(item.Key)
			switch {
			case err != nil:
				return err
			case k.h.Equal(now.Object, between):
				return nil // the patch came first, or was refused
			case refused:
				return errors.New("a patch that was refused has changed the object")
			case v != object.Any || !k.h.Equal(now.Object, patched):
				return errors.New("an object that was written while a patch was on its way is lost")
			}
			return nil
		}))
	}
}

func patchNothing[T any](k *kit[T]) {
	w := k.writer()
	item := w.new(k.h.Key(0))
	p, _ := w.anyPatch(item)
	got, err := w.patch(item.Key, p, object.Any)
	item = w.can("Patch", got, err)
	refusing, err := patch.JSON([]byte(`[{"op":"test","path":"/backendtest-no-such-member","value":"x"}]`))
	k.must(err)
	if _, err := w.patch(item.Key, refusing, object.Any); err == nil {
		k.fail("a JSON patch whose test fails is answered without an error")
	}
	w.still(item, "a JSON patch whose test fails")
	told := w.listen()
	empty, err := patch.Between(item.Object, item.Object)
	k.must(err)
	for what, p := range map[string]patch.Patch{"an empty patch": empty, "a patch that was done before": p} {
		for _, v := range []object.Version{object.Any, item.Version} {
			if v == "" {
				continue
			}
			got, err := w.patch(item.Key, p, v)
			k.must(err)
			if !w.same(got, item) {
				k.fail("%s answers another object: version %q, ID %q, was version %q, ID %q", what, got.Version, got.ID, item.Version, item.ID)
			}
			w.still(item, what)
		}
		if _, err := w.patch(k.h.Key(1), p, object.Any); !errors.Is(err, backend.ErrNotFound) {
			k.fail("%s, of nothing, is not ErrNotFound but: %w", what, orNil(err))
		}
	}
	told("a patch that changes nothing")
}

// listen watches from now on; the answer fails the check if any change was told.
func (w *writer[T]) listen() func(what string) {
	k, st := w.st.k, w.st
	l, err := st.list(k.ctx, reflector.ListOptions{})
	k.must(err)
	before := maps.Clone(l.items)
	c := &client[T]{st: st, state: l.items, at: l.at, whole: true}
	c.onBatch = func(b reflector.Batch[T]) error {
		if len(b.Events) > 0 && !b.Reset && c.stage == nil && st.positional() && !st.powers.StaleLists {
			return fmt.Errorf("is told by a watch: %s", verbs(b.Events))
		}
		return nil
	}
	k.must(c.follow("the first batch of a watch", func() bool { return c.opened && c.stage == nil }))
	return func(what string) {
		k.quiet()
		if err := c.seen(); err != nil {
			k.fail("%s %w", what, err)
		}
		if st.powers.StaleLists {
			return
		}
		for key, item := range before {
			if now, ok := c.state[key]; !ok || !w.same(now, item) {
				k.fail("after %s, a watch shows %q in another state", what, key)
			}
		}
		if len(c.state) != len(before) {
			k.fail("after %s, a watch shows %d objects, there were %d", what, len(c.state), len(before))
		}
		k.must(c.close())
	}
}
