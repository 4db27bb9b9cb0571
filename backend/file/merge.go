package file

import (
	"cmp"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/homeostat/homeostat/object"
)

// merge decides what is in force: the objects of all files, one a key. It is
// called in turn.
func (s *Source[T]) merge(look time.Time) {
	type claim struct {
		file  string
		entry entry[T]
	}
	claims := map[string][]claim{} // the first is the one that counts
	var faults []Fault
	for _, name := range slices.Sorted(maps.Keys(s.files)) {
		f := s.files[name]
		if !f.gone.IsZero() {
			continue
		}
		if f.fault != nil {
			faults = append(faults, s.faultOf(name, f.fault))
		}
		for _, e := range f.entries {
			c := claims[e.item.Key]
			if len(c) > 0 && s.holders[e.item.Key] == name && c[0].file != name {
				c = slices.Insert(c, 0, claim{name, e}) // it was there first
			} else {
				c = append(c, claim{name, e})
			}
			claims[e.item.Key] = c
		}
	}
	// What went just now is in force until somebody else says it.
	for name, f := range s.files {
		for _, e := range f.entries {
			if !f.gone.IsZero() && claims[e.item.Key] == nil && s.holders[e.item.Key] == name {
				claims[e.item.Key] = []claim{{name, e}}
			}
		}
	}
	items := make([]object.Item[T], 0, len(claims))
	s.holders = make(map[string]string, len(claims))
	for key, c := range claims {
		items = append(items, c[0].entry.item)
		s.holders[key] = c[0].file
		for _, other := range c[1:] {
			faults = append(faults, s.faultOf(other.file, atLine(other.entry.line, ErrDuplicate,
				"%q is also in %s, line %d", key, filepath.Join(s.dir, c[0].file), c[0].entry.line)))
		}
	}
	slices.SortFunc(items, func(a, b object.Item[T]) int { return strings.Compare(a.Key, b.Key) })
	slices.SortFunc(faults, func(a, b Fault) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), strings.Compare(a.Err.Error(), b.Err.Error()))
	})

	s.mu.Lock()
	fresh, healed := compare(s.mu.faults, faults)
	s.mu.faults, s.mu.look = faults, look
	if !slices.EqualFunc(items, s.mu.items, func(a, b object.Item[T]) bool { return a.Key == b.Key && a.Version == b.Version }) {
		s.mu.generation++
	}
	s.mu.items = items
	s.mu.Unlock()

	for _, f := range fresh {
		attrs := []any{"file", f.File, "line", f.Line, "error", f.Err}
		if p, ok := errors.AsType[*PanicError](f.Err); ok {
			attrs = append(attrs, "stack", string(p.Stack))
		}
		s.opts.Logger.Warn("manifest at fault; what it said last remains in force", attrs...)
	}
	for _, file := range healed {
		s.opts.Logger.Info("manifest is good again, or gone", "file", file)
	}
}

func (s *Source[T]) faultOf(name string, err error) Fault {
	fault := Fault{File: filepath.Join(s.dir, name), Err: err}
	var at *lineError
	if errors.As(err, &at) {
		fault.Line, fault.Err = at.line, at.err
	}
	return fault
}

// compare tells new faults from those that were there before, which keep their
// Since, and lists the files whose faults are over.
func compare(before, now []Fault) (fresh []Fault, healed []string) {
	since := map[string]time.Time{}
	bad := map[string]bool{}
	for _, f := range before {
		since[f.Error()] = f.Since
		bad[f.File] = true
	}
	for i, f := range now {
		at, known := since[f.Error()]
		if !known {
			at = time.Now()
		}
		now[i].Since = at
		if !known {
			fresh = append(fresh, now[i])
		}
		delete(bad, f.File)
	}
	return fresh, slices.Sorted(maps.Keys(bad))
}
