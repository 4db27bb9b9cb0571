package consulserver

import (
	"bytes"
	"maps"
	"slices"
	"strings"
)

// Entry is a key as Consul answers it.
type Entry struct {
	LockIndex   uint64
	Key         string
	Flags       uint64
	Value       []byte // base64 in JSON
	CreateIndex uint64
	ModifyIndex uint64
}

// state is one state of the store. Entries are never changed.
type state struct {
	index   uint64 // of the last write to anything
	table   uint64 // of the last write to a key
	entries map[string]*Entry
	deleted map[string]uint64 // by which write, until it is forgotten
}

func (s *state) clone() state {
	c := *s
	c.entries, c.deleted = maps.Clone(s.entries), maps.Clone(s.deleted)
	return c
}

// under is what a query shows, in order, and its index.
func (s *state) under(prefix string, recurse bool) (found []*Entry, index uint64) {
	if !recurse {
		if e := s.entries[prefix]; e != nil {
			return []*Entry{e}, e.ModifyIndex
		}
		return nil, max(s.table, 1)
	}
	for key, e := range s.entries {
		if strings.HasPrefix(key, prefix) {
			found = append(found, e)
			index = max(index, e.ModifyIndex)
		}
	}
	for key, at := range s.deleted {
		if strings.HasPrefix(key, prefix) {
			index = max(index, at)
		}
	}
	if index == 0 || prefix == "" {
		index = s.table
	}
	slices.SortFunc(found, func(a, b *Entry) int { return strings.Compare(a.Key, b.Key) })
	return found, max(index, 1)
}

// put stores a value at the index of the write that is under way. What is there
// already stays as it is.
func (s *state) put(key string, flags uint64, value []byte) *Entry {
	e := &Entry{Key: key, Flags: flags, Value: value, CreateIndex: s.index, ModifyIndex: s.index}
	if cur := s.entries[key]; cur != nil {
		if cur.Flags == flags && bytes.Equal(cur.Value, value) {
			return cur
		}
		e.CreateIndex, e.LockIndex = cur.CreateIndex, cur.LockIndex
	}
	s.entries[key] = e
	delete(s.deleted, key)
	s.table = s.index
	return e
}

func (s *state) remove(key string) {
	if s.entries[key] != nil {
		delete(s.entries, key)
		s.deleted[key], s.table = s.index, s.index
	}
}

// at is the ModifyIndex of a key; 0: there is none.
func (s *state) at(key string) uint64 {
	if e := s.entries[key]; e != nil {
		return e.ModifyIndex
	}
	return 0
}
