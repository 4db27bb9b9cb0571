package object_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/homeostat/homeostat/object"
	"github.com/stretchr/testify/require"
)

type (
	plain struct{ Name string }
	pod   struct {
		object.Meta `json:"meta,omitzero"`
		Command     string `json:"command,omitempty"`
	}
	base      struct{ object.Meta }
	nested    struct{ base }
	byPointer struct{ *object.Meta }
	holder    interface{ ObjectMeta() *object.Meta }
)

func TestMetaOf(t *testing.T) {
	// Each finds the Meta of an object, given what it should find.
	found := map[string]func() (got, want *object.Meta){
		"a struct": func() (_, _ *object.Meta) {
			p := pod{}
			return object.MetaOf(&p), &p.Meta
		},
		"a pointer": func() (_, _ *object.Meta) {
			p := &pod{}
			return object.MetaOf(&p), &p.Meta
		},
		"Meta itself": func() (_, _ *object.Meta) {
			m := object.Meta{}
			return object.MetaOf(&m), &m
		},
		"an embedded struct that embeds it": func() (_, _ *object.Meta) {
			n := nested{}
			return object.MetaOf(&n), &n.Meta
		},
		"a pointer to such": func() (_, _ *object.Meta) {
			n := &nested{}
			return object.MetaOf(&n), &n.Meta
		},
		"an embedded pointer": func() (_, _ *object.Meta) {
			b := byPointer{Meta: &object.Meta{}}
			return object.MetaOf(&b), b.Meta
		},
		"an interface that holds a pointer": func() (_, _ *object.Meta) {
			p := &pod{}
			var h holder = p
			return object.MetaOf(&h), &p.Meta
		},
	}
	for name, f := range found {
		t.Run(name, func(t *testing.T) {
			if got, want := f(); got == nil || got != want {
				t.Errorf("got %p, want %p", got, want)
			}
		})
	}

	none := map[string]func() *object.Meta{
		"no Meta":            func() *object.Meta { return object.MetaOf(&plain{}) },
		"no Meta, a pointer": func() *object.Meta { p := &plain{}; return object.MetaOf(&p) },
		"not even a struct":  func() *object.Meta { s := "text"; return object.MetaOf(&s) },
		"a nil pointer":      func() *object.Meta { var p *pod; return object.MetaOf(&p) },
		"a nil embedded one": func() *object.Meta { return object.MetaOf(&byPointer{}) },
		"a nil interface":    func() *object.Meta { var h holder; return object.MetaOf(&h) },
		"a nil in an interface": func() *object.Meta {
			var h holder = (*pod)(nil)
			return object.MetaOf(&h)
		},
		"nil itself": func() *object.Meta { return object.MetaOf[pod](nil) },
	}
	for name, f := range none {
		t.Run(name, func(t *testing.T) {
			if got := f(); got != nil {
				t.Errorf("got %+v, want nil", got)
			}
		})
	}
}

func TestMetaOf_IsPartOfTheObject(t *testing.T) {
	p := pod{}
	object.MetaOf(&p).Finalizers = []string{"volume"}
	if len(p.Finalizers) != 1 {
		t.Errorf("got %v", p.Finalizers)
	}
}

func TestMeta_IsDeleting(t *testing.T) {
	m := object.Meta{}
	if m.IsDeleting() {
		t.Error("a zero Meta is being deleted")
	}
	m.Deleting = time.Unix(1, 0)
	if !m.IsDeleting() {
		t.Error("one with a time is not")
	}
}

func TestMeta_JSON(t *testing.T) {
	tests := []struct {
		name string
		obj  pod
		want string
	}{
		{"nothing set, nothing written", pod{}, `{}`},
		{"labels", pod{Meta: object.Meta{Labels: map[string]string{"app": "web"}}}, `{"meta":{"labels":{"app":"web"}}}`},
		{"all", pod{Command: "run", Meta: object.Meta{
			Labels:     map[string]string{"app": "web"},
			Owners:     []object.Owner{{Kind: "ReplicaSet", Key: "web"}, {Kind: "Node", Key: "n1", ID: "7"}},
			Finalizers: []string{"volume"},
			Deleting:   time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		}}, `{"meta":{"labels":{"app":"web"},` +
			`"owners":[{"kind":"ReplicaSet","key":"web"},{"kind":"Node","key":"n1","id":"7"}],` +
			`"finalizers":["volume"],"deleting":"2026-01-02T03:04:05Z"},"command":"run"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			data, err := json.Marshal(tt.obj)
			if err != nil || string(data) != tt.want {
				t.Errorf("got %s, %v\nwant %s", data, err, tt.want)
			}
			var back pod
			if err := json.Unmarshal(data, &back); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.obj, back); diff != "" {
				t.Error(diff)
			}
		})
	}
}

type carrier struct{ object.Meta }

type farther struct{ *carrier }

func TestMetaOfBehindANilPointerIsNone(t *testing.T) {
	require.Nil(t, object.MetaOf(&farther{}))
	none := &farther{}
	require.Nil(t, object.MetaOf(&none))
	some := &farther{&carrier{}}
	require.Same(t, &some.carrier.Meta, object.MetaOf(&some))
}

type odd struct{}

func (odd) ObjectMeta() *object.Meta { panic("its own") }

func TestMetaOfLeavesATypesOwnPanicAlone(t *testing.T) {
	require.PanicsWithValue(t, "its own", func() { object.MetaOf(&odd{}) })
}
