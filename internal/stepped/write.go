package stepped

import (
	"errors"
	"fmt"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/patch"
)

// write does a write, or a Get, and compares the answer with what the model makes
// of it. Nothing is written while some client could mistake it.
func (w *world) write(s step) bool {
	if s.op == "get" {
		got, err := w.store.Get(w.ctx, w.keys[s.key])
		if err = w.found(w.keys[s.key], got, err); err != nil {
			w.fault("get k%d: %v", s.key, err)
		}
		return true
	}
	if w.mistakable() {
		return false
	}
	key, n := w.keys[s.key], len(w.model.writes)
	cur := w.model.writes[w.model.now().state[s.key]] // the zero item, if there is none
	there := cur.Key != ""
	want, id, expected := w.precondition(s.word, cur)
	switch {
	case s.op == "create":
		want, expected = "", nil
		if there {
			expected = backend.ErrExists
		}
	case want == "":
		expected = backend.ErrNoVersion
	case !there:
		expected = backend.ErrNotFound
	case s.op != "update" && id != "": // only an update names one
		expected = nil
	}
	var got item
	var err error
	switch s.op {
	case "create":
		got, err = w.store.Create(w.ctx, key, Thing{n})
	case "update":
		got, err = w.store.Update(w.ctx, item{Key: key, Version: want, ID: id, Object: Thing{n}})
	case "patch":
		p, bad := patch.Merge(fmt.Appendf(nil, `{"n":%d}`, n))
		if bad != nil {
			panic(bad) // it is our own
		}
		got, err = w.store.Patch(w.ctx, key, p, want)
	case "delete":
		got, err = w.store.Delete(w.ctx, key, want)
	default:
		return false
	}
	if !errors.Is(err, expected) || expected == nil && err != nil {
		w.fault("%s: error %v, want %v", s, err, expected)
		return true
	}
	at := w.head()
	if err != nil {
		if at != w.model.now().at {
			w.fault("%s: it failed, and the store has moved", s)
		}
		return true
	}
	if err := w.wrote(s, got, cur, n); err != nil {
		w.fault("%s: %v", s, err)
		return true
	}
	if w.compare(at, w.model.now().at) <= 0 {
		w.fault("%s: the store's position did not move", s)
	}
	stored := &got
	if s.op == "delete" {
		stored = nil
	}
	if err := w.model.wrote(s.key, stored, got.Version, at); err != nil {
		w.fault("%s: %v", s, err)
	}
	w.written = written{key: s.key, version: got.Version, of: w.model.now(), life: w.model.life}
	return true
}

// wrote checks what a write has answered.
func (w *world) wrote(s step, got, cur item, n int) error {
	want := item{Key: w.keys[s.key], Version: got.Version, ID: cur.ID, Object: Thing{n}}
	switch s.op {
	case "create":
		if got.ID == "" || w.model.ids[got.ID] {
			return errors.New("the ID is none, or was there before")
		}
		w.model.ids[got.ID] = true
		want.ID = got.ID
	case "delete":
		want.Object = cur.Object
	}
	if got != want {
		return fmt.Errorf("answers %s, want %s, its ID right: %t", show(got), show(want), got.ID == want.ID)
	}
	return nil
}

// precondition is what the word asks for, and the error that must follow where
// there is an object.
func (w *world) precondition(word string, cur item) (v object.Version, id string, err error) {
	switch word {
	case "any":
		return object.Any, "", nil
	case "stale": // of an earlier state, or of nothing
		return "0", "", backend.ErrConflict
	case "other": // the object that was there before
		return object.Any, "another", backend.ErrConflict
	case "none":
		return "", "", backend.ErrNoVersion
	}
	v = cur.Version
	if v == "" {
		v = "1"
	}
	return v, cur.ID, nil
}
