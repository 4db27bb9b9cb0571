package backendtest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/object"
)

// kindsUnderOneVersion has writes of all kinds meet under one version: one is done.
func (w *writer[T]) kindsUnderOneVersion() {
	k := w.st.k
	w.raced++
	item := w.new(k.h.Key(100 + w.raced))
	ops := []string{"Delete", "Update", "Patch", "Update", "Delete", "Patch"}
	if w.raced%2 == 0 { // whoever is started first may be done first
		slices.Reverse(ops)
	}
	errs := many(len(ops), func(i int) error {
		_, err := w.writes(item, item.Version)[ops[i]]()
		return err
	})
	done, unsupported, last := 0, 0, ""
	for i, err := range errs {
		switch {
		case err == nil:
			done++
			last = ops[i]
		case errors.Is(err, errors.ErrUnsupported):
			unsupported++
		case !errors.Is(err, backend.ErrConflict) && !errors.Is(err, backend.ErrNotFound):
			k.fail("%s, of many kinds of writes at once under one version: %w", ops[i], err)
		}
	}
	if done != 1 && unsupported < len(ops) {
		k.fail("%d writes of %d, of different kinds at once under one version, were done", done, len(ops))
	}
	if last == "Delete" {
		w.absent(item.Key, "a Delete that was done while other writes under the same version were refused")
	}
}

// deleteAmongAny deletes an object while others write it unconditionally: whoever
// comes later finds nothing, and nobody brings it back.
func (w *writer[T]) deleteAmongAny() {
	k := w.st.k
	w.raced++
	item := w.new(k.h.Key(100 + w.raced))
	ops := []string{"Update", "Patch", "Delete", "Update", "Patch"}
	errs := many(len(ops), func(i int) error {
		it := item
		if i > 2 {
			it.ID = "" // meant for whatever is there
		}
		_, err := w.writes(it, object.Any)[ops[i]]()
		return err
	})
	for i, err := range errs {
		switch {
		case errors.Is(err, errors.ErrUnsupported):
			if ops[i] == "Delete" {
				return
			}
		case err != nil && (ops[i] == "Delete" || !errors.Is(err, backend.ErrNotFound)):
			k.fail("%s under object.Any, while others write and delete: %w", ops[i], err)
		}
	}
	w.absent(item.Key, fmt.Sprintf("a Delete under object.Any, among %d other writes", len(ops)-1))
}
