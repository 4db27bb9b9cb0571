package backendtest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/homeostat/homeostat/reflector"
)

// Harness is how the kit gets at a kind of store. Only New and Object are needed.
// A kind of store that can't be written to at all has nearly every check skipped.
type Harness[T any] struct {
	// New gives a store that is empty as far as its adapter shows it, for one
	// check alone. A real server may be one for all checks, as long as each gets
	// a prefix, a table or a bucket of its own. ctx is that of New alone.
	New func(ctx context.Context) (*Fixture[T], error)
	// Object makes the n-th object: another n, another object, by Equal. It must
	// not depend on the key.
	Object func(n int) T
	// Key makes the n-th key, n from 0: another n, another key. Defaults to
	// "key-0000", "key-0001" …; then the check object/keys uses odd ones besides,
	// and the store may refuse those that it cannot hold.
	Key func(n int) string
	// Equal compares two objects. Defaults to reflect.DeepEqual.
	Equal func(a, b T) bool

	// Wait is how long the kit waits for what has to come. Defaults to 10 s.
	Wait time.Duration
	// Quiet is how long the kit listens for what must not come. Defaults to
	// 100 ms.
	Quiet time.Duration
	// Progress is the interval that sources with Powers.Progress are asked to
	// keep. Defaults to 1 s.
	Progress time.Duration
	// Many is how many objects there are where a list has to be long: more than
	// any page. Defaults to 600.
	Many int
}

// Fixture is one store and its adapter, made for one check. What the harness
// cannot do is left nil; what it finds out only when it is asked is answered by
// errors.ErrUnsupported. Either way the checks that need it are skipped, and say so.
//
// The kit calls Write from several goroutines at once, and the others from one.
// Each gets a context that ends after a minute, or six times Harness.Wait if
// that is longer.
type Fixture[T any] struct {
	// Source is the adapter under test. When it is a backend.Backend, its write
	// side is tested too.
	Source reflector.ListWatcher[T]
	// Write makes the changes in the store, past the adapter if it can. One call
	// is one step of the store: with several changes, all are seen at once or
	// the answer is errors.ErrUnsupported. Defaults to the methods of Source, one
	// change at a time, where that is a backend.Backend.
	Write func(ctx context.Context, changes ...Change[T]) error
	// Restart ends the store and starts it again on what it keeps, if it keeps
	// anything. The answer is the adapter to use from then on; open watches of the
	// one before end.
	Restart func(ctx context.Context) (reflector.ListWatcher[T], error)
	// Compact makes the store forget its history up to now.
	Compact func(ctx context.Context) error
	// Forget makes the store forget what it remembers of deleted objects, as a
	// purge or the end of a tombstone's time does.
	Forget func(ctx context.Context) error
	// Cut breaks what connects open watches with the store, in whatever way it
	// breaks in practice.
	Cut func(ctx context.Context) error
	// Down makes the store unreachable until up is called.
	Down func(ctx context.Context) (up func() error, err error)
	// Spoil makes of the object under key, which is there, one that the adapter
	// cannot decode, as a change that others have made past it.
	Spoil func(ctx context.Context, key string) error
	// Close ends the store, after the check. Its error fails the check.
	Close func() error
}

// Change is one object put or deleted.
type Change[T any] struct {
	Key string
	// Object is what is put, whether there was one or not.
	Object T
	// Delete takes the object away instead; that there is none is no error.
	Delete bool
}

// ErrHarness: the harness lacks what it must have, or did not do what it says.
var ErrHarness = errors.New("backendtest: faulty harness")

// equalObjects says that the objects to write cannot be told apart.
func (h Harness[T]) equalObjects() (equal bool) {
	defer func() {
		if recover() != nil {
			equal = false // whoever uses it will say so
		}
	}()
	a, b := h.Object(0), h.Object(1)
	if h.Equal != nil {
		return h.Equal(a, b)
	}
	return reflect.DeepEqual(a, b)
}

// withDefaults fills in what was left out; the error says what can't be.
func (h Harness[T]) withDefaults() (Harness[T], error) {
	var err error
	if h.New == nil {
		err = errors.Join(err, fmt.Errorf("%w: it has no New", ErrHarness))
	}
	if h.Object == nil {
		err = errors.Join(err, fmt.Errorf("%w: it has no Object", ErrHarness))
	}
	if h.Object != nil && h.equalObjects() {
		err = errors.Join(err, fmt.Errorf("%w: Object gives equal objects for 0 and 1", ErrHarness))
	}
	if h.Key == nil {
		h.Key = func(n int) string { return fmt.Sprintf("key-%04d", n) }
	}
	if h.Equal == nil {
		h.Equal = func(a, b T) bool { return reflect.DeepEqual(a, b) }
	}
	if h.Wait <= 0 {
		h.Wait = 10 * time.Second
	}
	if h.Quiet <= 0 {
		h.Quiet = 100 * time.Millisecond
	}
	if h.Progress <= 0 {
		h.Progress = time.Second
	}
	if h.Many <= 0 {
		h.Many = 600
	}
	return h, err
}
