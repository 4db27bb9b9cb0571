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

// mergeLocked decides what is in force: the objects of all files, one a key.
func (s *Source[T]) mergeLocked() {
	type claim struct {
		file  string
		entry entry[T]
	}
	claims := map[string][]claim{} // the first is the one that counts
	var faults []Fault
	for _, name := range slices.Sorted(maps.Keys(s.mu.files)) {
		f := s.mu.files[name]
		if f.fault != nil {
			faults = append(faults, s.faultOf(name, f.fault))
		}
		for _, e := range f.entries {
			c := claims[e.item.Key]
			if len(c) > 0 && s.mu.holders[e.item.Key] == name && c[0].file != name {
				c = slices.Insert(c, 0, claim{name, e}) // it was there first
			} else {
				c = append(c, claim{name, e})
			}
			claims[e.item.Key] = c
		}
	}
	items := make([]object.Item[T], 0, len(claims))
	holders := make(map[string]string, len(claims))
	for key, c := range claims {
		items = append(items, c[0].entry.item)
		holders[key] = c[0].file
		for _, other := range c[1:] {
			faults = append(faults, s.faultOf(other.file, atLine(other.entry.line, ErrDuplicate,
				"%q is also in %s, line %d", key, filepath.Join(s.dir, c[0].file), c[0].entry.line)))
		}
	}
	slices.SortFunc(items, func(a, b object.Item[T]) int { return strings.Compare(a.Key, b.Key) })
	if !slices.EqualFunc(items, s.mu.items, func(a, b object.Item[T]) bool { return a.Key == b.Key && a.Version == b.Version }) {
		s.mu.generation++
	}
	s.mu.items, s.mu.holders = items, holders
	s.tellLocked(faults)
}

func (s *Source[T]) faultOf(name string, err error) Fault {
	fault := Fault{File: filepath.Join(s.dir, name), Err: err}
	var at *lineError
	if errors.As(err, &at) {
		fault.Line, fault.Err = at.line, at.err
	}
	return fault
}

// tellLocked logs what has come up and what is over, and keeps since when the
// rest is so.
func (s *Source[T]) tellLocked(faults []Fault) {
	slices.SortFunc(faults, func(a, b Fault) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), strings.Compare(a.Err.Error(), b.Err.Error()))
	})
	since := map[string]time.Time{}
	bad := map[string]bool{}
	for _, f := range s.mu.faults {
		since[f.Error()] = f.Since
		bad[f.File] = true
	}
	now := time.Now()
	for i, f := range faults {
		if at, known := since[f.Error()]; known {
			faults[i].Since = at
			delete(bad, f.File)
			continue
		}
		faults[i].Since = now
		delete(bad, f.File)
		s.opts.Logger.Warn("manifest at fault; what it said last remains in force", "file", f.File, "line", f.Line, "error", f.Err)
	}
	for file := range bad {
		s.opts.Logger.Info("manifest is good again, or gone", "file", file)
	}
	s.mu.faults = faults
}
