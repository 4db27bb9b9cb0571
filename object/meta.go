package object

import (
	"runtime"
	"time"
)

// Meta is what the optional parts of this library need to know of an object.
// Embed it in your type, by value, to have labels, owners, finalizers and soft
// deletion:
//
//	type Pod struct {
//		object.Meta `json:"meta,omitzero"`
//		Command     []string
//	}
type Meta struct {
	// Labels are for selecting.
	Labels map[string]string `json:"labels,omitempty"`
	// Owners are the objects that this one belongs to.
	Owners []Owner `json:"owners,omitempty"`
	// Finalizers name who still has to clean up before a deleted object goes.
	Finalizers []string `json:"finalizers,omitempty"`
	// Deleting is when a delete was asked for that waits for finalizers; set by
	// the store alone.
	Deleting time.Time `json:"deleting,omitzero"`
}

// Owner names the object that another one belongs to.
type Owner struct {
	// Kind is the owner's type, by a name of the program's own.
	Kind string `json:"kind"`
	// Key is what the owner's store holds it under.
	Key string `json:"key"`
	// ID pins the owner's identity: one deleted and created again under the same
	// key is another owner. Empty when its store cannot tell.
	ID string `json:"id,omitempty"`
}

// ObjectMeta makes the embedding type findable by [MetaOf].
func (m *Meta) ObjectMeta() *Meta { return m }

// IsDeleting says that the object was deleted and only waits for its finalizers.
func (m Meta) IsDeleting() bool { return !m.Deleting.IsZero() }

// MetaOf finds the Meta embedded in *obj, whether T is a struct or a pointer to
// one. It is nil when there is none, also when T is a nil pointer, or the Meta is
// behind an embedded pointer that is nil.
//
// What it points to is part of *obj: to change it is to change the object. Of a
// T that is a pointer this is the shared object, so clone it first.
func MetaOf[T any](obj *T) (m *Meta) {
	// A method promoted through a pointer that is nil dereferences it.
	defer func() {
		switch v := recover().(type) {
		case nil:
		case runtime.Error:
			m = nil
		default:
			panic(v) // a type's own ObjectMeta has its own reasons
		}
	}()
	if obj == nil {
		return nil
	}
	holder, ok := any(obj).(metaHolder)
	if !ok {
		holder, ok = any(*obj).(metaHolder)
	}
	if !ok {
		return nil
	}
	return holder.ObjectMeta()
}

type metaHolder interface{ ObjectMeta() *Meta }
