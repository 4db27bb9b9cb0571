package deltafifo_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/homeostat/homeostat/deltafifo"
	"github.com/homeostat/homeostat/object"
)

type (
	item  = object.Item[int]
	delta = deltafifo.Delta[int]
)

const (
	put  = deltafifo.Put
	del  = deltafifo.Delete
	sync = deltafifo.Sync
)

// state is revision rev of the object with this ID under key "a".
func state(id string, rev int) item {
	return item{Key: "a", ID: id, Version: object.Version(fmt.Sprint(rev)), Object: rev}
}

// forms makes what can be pending, of a consumer that holds (held) revision 1 of
// object "x" or nothing.
func forms(held bool) map[string][]delta {
	if !held {
		return map[string][]delta{
			"nothing": nil,
			"put":     {{Type: put, Item: state("x", 2), Cause: object.Initial}},
		}
	}
	old := state("x", 1)
	gone := delta{Type: del, Item: state("x", 2), Had: true, Old: old, Cause: object.Watched}
	return map[string][]delta{
		"nothing":     nil,
		"put":         {{Type: put, Item: state("x", 2), Had: true, Old: old, Cause: object.Initial}},
		"sync":        {{Type: sync, Item: old, Had: true, Old: old, Cause: object.Resync}},
		"delete":      {gone},
		"delete, put": {gone, {Type: put, Item: state("y", 3), Cause: object.Watched}},
	}
}

// next makes what can be pushed behind them.
func next(column string, held bool, pending []delta) delta {
	d := delta{Item: state("x", 9), Cause: object.Relist}
	if n := len(pending); n > 0 {
		d.Item.ID = pending[n-1].Item.ID
	} else if held {
		d.Had, d.Old = true, state("x", 1)
	}
	switch column {
	case "put other":
		d.Item.ID = "z"
		fallthrough
	case "put":
		d.Type = put
	case "delete":
		d.Type = del
	case "sync":
		d.Type = sync
	}
	return d
}

func form(ds []delta) string {
	if len(ds) == 0 {
		return "nothing"
	}
	var names []string
	for _, d := range ds {
		names = append(names, d.Type.String())
	}
	return strings.Join(names, ", ")
}

// The documentation's table and the function are one.
func TestRules_TheDocumentedTableIsTheFunction(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	cells := 0
	var held bool
	var columns []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "//"))
		switch line {
		case "consumer holds the key":
			held = true
		case "consumer does not hold the key":
			held = false
		}
		cols := strings.Split(line, "|")
		if len(cols) < 2 {
			continue
		}
		for i := range cols {
			cols[i] = strings.TrimSpace(cols[i])
		}
		if cols[0] == "pending" {
			columns = cols
			continue
		}
		pending, ok := forms(held)[cols[0]]
		if !ok {
			t.Fatalf("row %q (held %t) cannot be pending", cols[0], held)
		}
		for i := 1; i < len(cols); i++ {
			cells++
			got := form(deltafifo.Merge(pending, next(columns[i], held, pending)))
			if got != cols[i] {
				t.Errorf("held %t: %s + %s is documented as %q, is %q", held, cols[0], columns[i], cols[i], got)
			}
		}
	}
	if want := 4 * (len(forms(true)) + len(forms(false))); cells != want {
		t.Errorf("the table has %d cells, want %d", cells, want)
	}
}

// What the merged deltas carry, rule by rule.
func TestRules_WhatTheDeltasCarry(t *testing.T) {
	old := state("x", 1)
	had := func(ty deltafifo.Type, it item, c object.Cause) delta {
		return delta{Type: ty, Item: it, Had: true, Old: old, Cause: c}
	}
	inferred := func(d delta) delta { d.Inferred = true; return d }
	fresh := func(it item, c object.Cause) delta { return delta{Type: put, Item: it, Cause: c} }
	noID := func(rev int) item { return state("", rev) }

	tests := []struct {
		name    string
		pending []delta
		next    delta
		want    []delta
	}{
		{"an add carries no Old, whatever it came with", nil,
			delta{Type: put, Item: state("x", 2), Old: old, Cause: object.Watched, Inferred: true},
			[]delta{fresh(state("x", 2), object.Watched)}},
		{"an update keeps what the consumer holds", nil,
			had(put, state("x", 2), object.Watched),
			[]delta{had(put, state("x", 2), object.Watched)}},
		{"only a delete is inferred", nil,
			inferred(had(put, state("x", 2), object.Relist)),
			[]delta{had(put, state("x", 2), object.Relist)}},
		{"an inferred delete says so", nil,
			inferred(had(del, old, object.Relist)),
			[]delta{inferred(had(del, old, object.Relist))}},
		{"put of another object ends the held one", nil,
			had(put, state("y", 2), object.Relist),
			[]delta{inferred(had(del, old, object.Relist)), fresh(state("y", 2), object.Relist)}},
		{"no ID tells no other object", nil,
			had(put, noID(2), object.Relist),
			[]delta{had(put, noID(2), object.Relist)}},
		{"delete of an object never seen ends the held one", nil,
			had(del, state("y", 3), object.Watched),
			[]delta{inferred(had(del, old, object.Watched))}},

		{"a key that Old leaves out: another object", nil,
			delta{Type: put, Item: state("y", 2), Had: true, Old: item{ID: "x"}, Cause: object.Relist},
			[]delta{{Type: del, Item: item{Key: "a", ID: "x"}, Had: true, Old: item{ID: "x"}, Cause: object.Relist, Inferred: true},
				fresh(state("y", 2), object.Relist)}},
		{"a key that Old leaves out: a delete without state", nil,
			delta{Type: del, Item: item{Key: "a"}, Had: true, Old: item{Version: "1"}, Cause: object.Watched},
			[]delta{{Type: del, Item: item{Key: "a", Version: "1"}, Had: true, Old: item{Version: "1"}, Cause: object.Watched}}},

		{"put on add: newest state, latest cause", []delta{fresh(state("x", 2), object.Initial)},
			delta{Type: put, Item: state("x", 3), Had: true, Old: state("x", 2), Cause: object.Watched},
			[]delta{fresh(state("x", 3), object.Watched)}},
		{"put on add: another object, the first never seen", []delta{fresh(state("x", 2), object.Initial)},
			delta{Type: put, Item: state("y", 3), Had: true, Old: state("x", 2), Cause: object.Watched},
			[]delta{fresh(state("y", 3), object.Watched)}},
		{"put on update: oldest Old, newest state", []delta{had(put, state("x", 2), object.Watched)},
			delta{Type: put, Item: state("x", 3), Had: true, Old: state("x", 2), Cause: object.Relist},
			[]delta{had(put, state("x", 3), object.Relist)}},
		{"put on update: another object; the tombstone has the newest state of the first",
			[]delta{had(put, state("x", 2), object.Watched)},
			delta{Type: put, Item: state("y", 3), Had: true, Old: state("x", 2), Cause: object.Relist},
			[]delta{inferred(had(del, state("x", 2), object.Relist)), fresh(state("y", 3), object.Relist)}},
		{"put on an update without ID: told apart by what is held",
			[]delta{had(put, noID(2), object.Watched)},
			delta{Type: put, Item: state("y", 3), Cause: object.Relist},
			[]delta{inferred(had(del, noID(2), object.Relist)), fresh(state("y", 3), object.Relist)}},
		{"sync on put adds nothing", []delta{had(put, state("x", 2), object.Watched)},
			delta{Type: sync, Item: state("x", 2), Had: true, Old: state("x", 2), Cause: object.Resync},
			[]delta{had(put, state("x", 2), object.Watched)}},
		{"delete on update: final state and what is held", []delta{had(put, state("x", 2), object.Watched)},
			delta{Type: del, Item: state("x", 3), Had: true, Old: state("x", 2), Cause: object.Watched},
			[]delta{had(del, state("x", 3), object.Watched)}},
		{"inferred delete on update", []delta{had(put, state("x", 2), object.Watched)},
			delta{Type: del, Item: state("x", 2), Had: true, Old: state("x", 2), Cause: object.Relist, Inferred: true},
			[]delta{inferred(had(del, state("x", 2), object.Relist))}},
		{"delete of another object on update", []delta{had(put, state("x", 2), object.Watched)},
			delta{Type: del, Item: state("y", 3), Cause: object.Watched},
			[]delta{inferred(had(del, state("x", 2), object.Watched))}},

		{"put on sync", []delta{had(sync, old, object.Resync)},
			delta{Type: put, Item: state("x", 2), Had: true, Old: old, Cause: object.Watched},
			[]delta{had(put, state("x", 2), object.Watched)}},
		{"put of another object on sync", []delta{had(sync, old, object.Resync)},
			delta{Type: put, Item: state("y", 2), Had: true, Old: old, Cause: object.Watched},
			[]delta{inferred(had(del, old, object.Watched)), fresh(state("y", 2), object.Watched)}},
		{"delete on sync", []delta{had(sync, old, object.Resync)},
			delta{Type: del, Item: state("x", 2), Had: true, Old: old, Cause: object.Watched},
			[]delta{had(del, state("x", 2), object.Watched)}},
		{"sync on sync keeps the first", []delta{had(sync, old, object.Audit)},
			had(sync, old, object.Resync),
			[]delta{had(sync, old, object.Audit)}},

		{"put on delete is no update, also of the same ID", []delta{had(del, state("x", 2), object.Watched)},
			delta{Type: put, Item: state("x", 3), Cause: object.Relist},
			[]delta{had(del, state("x", 2), object.Watched), fresh(state("x", 3), object.Relist)}},
		{"delete on delete: the later of two that were told", []delta{had(del, state("x", 2), object.Watched)},
			delta{Type: del, Item: state("x", 3), Cause: object.Relist},
			[]delta{had(del, state("x", 3), object.Relist)}},
		{"a delete that names only the key carries what is held", nil,
			delta{Type: del, Item: item{Key: "a"}, Had: true, Old: old, Cause: object.Watched},
			[]delta{had(del, old, object.Watched)}},
		{"a delete on update that names only the key", []delta{had(put, state("x", 2), object.Watched)},
			delta{Type: del, Item: item{Key: "a"}, Cause: object.Watched},
			[]delta{had(del, state("x", 2), object.Watched)}},
		{"delete on delete: told, naming only the key", []delta{inferred(had(del, state("x", 2), object.Relist))},
			delta{Type: del, Item: item{Key: "a"}, Cause: object.Watched},
			[]delta{had(del, state("x", 2), object.Watched)}},
		{"delete on delete: told beats inferred", []delta{inferred(had(del, state("x", 2), object.Relist))},
			delta{Type: del, Item: state("x", 3), Cause: object.Watched},
			[]delta{had(del, state("x", 3), object.Watched)}},
		{"delete on delete: inferred does not beat told", []delta{had(del, state("x", 3), object.Watched)},
			delta{Type: del, Item: state("x", 2), Cause: object.Relist, Inferred: true},
			[]delta{had(del, state("x", 3), object.Watched)}},
		{"delete on delete: of two inferred the first", []delta{inferred(had(del, state("x", 3), object.Audit))},
			delta{Type: del, Item: state("x", 2), Cause: object.Relist, Inferred: true},
			[]delta{inferred(had(del, state("x", 3), object.Audit))}},
		{"delete on delete: not another object's", []delta{inferred(had(del, state("x", 2), object.Relist))},
			delta{Type: del, Item: state("y", 3), Cause: object.Watched},
			[]delta{inferred(had(del, state("x", 2), object.Relist))}},

		{"put on delete, put: the newest of the new", forms(true)["delete, put"],
			delta{Type: put, Item: state("z", 4), Had: true, Old: state("y", 3), Cause: object.Relist},
			[]delta{had(del, state("x", 2), object.Watched), fresh(state("z", 4), object.Relist)}},
		{"delete on delete, put: the consumer hears of the end of what it holds", forms(true)["delete, put"],
			delta{Type: del, Item: state("y", 4), Had: true, Old: state("y", 3), Cause: object.Relist, Inferred: true},
			[]delta{had(del, state("x", 2), object.Watched)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, deltafifo.Merge(tt.pending, tt.next)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestType_String(t *testing.T) {
	for ty, want := range map[deltafifo.Type]string{put: "put", del: "delete", sync: "sync", 0: "Type(0)", 9: "Type(9)"} {
		if got := ty.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
