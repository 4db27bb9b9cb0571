package workqueue_test

import (
	"context"
	"net/netip"
	"testing"
	"time"
	"unique"
	"unsafe"

	"github.com/homeostat/homeostat/retry"
	"github.com/homeostat/homeostat/workqueue"
	"github.com/stretchr/testify/require"
)

// Handle has the name of one that is fine.
type Handle[T any] struct{ P *T }

type pair struct{ Namespace, Name string }

// refuses says that a queue of K does nothing, and says why.
func refuses[K comparable](t *testing.T, key K, part string) {
	t.Helper()
	q := workqueue.New[K](nil)
	q.Add(key, key)
	q.AddAfter(key, 1)
	q.AddWith(key, workqueue.AddOptions{})
	q.Remind(key, 1)
	q.Remind(key, 0)
	q.Forget(key)
	require.False(t, q.Cancel(key))
	require.ErrorIs(t, q.Done(key, nil), workqueue.ErrUnknownKey)
	_, known := q.Explain(key)
	require.False(t, known)
	require.Equal(t, workqueue.Stats{Refused: 6}, q.Stats())

	_, err := q.Get(t.Context())
	require.ErrorIs(t, err, workqueue.ErrBadKey)
	require.ErrorIs(t, err, workqueue.ErrInvalidOptions)
	require.ErrorContains(t, err, part)
	require.Equal(t, err, q.Run(t.Context(), 1, func(context.Context, K) error { return nil }))

	left, err := q.Drain(t.Context())
	require.Empty(t, left)
	require.NoError(t, err)
	require.Empty(t, q.Abort())
}

func accepts[K comparable](t *testing.T, a, equal, other K) {
	t.Helper()
	q := workqueue.New[K](nil)
	q.Add(a, equal, other)
	require.Equal(t, 2, q.Len())
	require.Equal(t, a, get(t, q))
	require.NoError(t, q.Done(equal, nil))
	q.Abort()
}

func TestQ09_KeysThatAreNotEqual(t *testing.T) {
	refuses(t, new(int), "kind ptr")
	refuses(t, 1.5, "kind float64")
	refuses(t, float32(1.5), "kind float32")
	refuses(t, complex(1, 2), "kind complex128")
	refuses(t, complex64(1), "kind complex64")
	refuses(t, make(chan int), "kind chan")
	refuses(t, unsafe.Pointer(nil), "kind unsafe.Pointer")
	refuses[any](t, []int{1}, "kind interface") // would panic when hashed
	refuses(t, struct{ P *int }{}, ".P of kind ptr")
	refuses(t, struct{ A [2]struct{ F float64 } }{}, ".A[].F of kind float64")
	refuses(t, [1]any{}, "[] of kind interface")
	refuses(t, time.Time{}, "of kind ptr")
	refuses(t, Handle[int]{}, ".P of kind ptr")

	accepts(t, "a", "a", "b")
	accepts(t, "", "", "b")
	accepts(t, true, true, false)
	accepts(t, int8(-1), -1, 0)
	accepts(t, uintptr(1), 1, 0)
	accepts(t, pair{"a", "b"}, pair{"a", "b"}, pair{"a", "c"})
	accepts(t, [2]string{"a", "b"}, [2]string{"a", "b"}, [2]string{"b", "a"})
	accepts(t, unique.Make("a"), unique.Make("a"), unique.Make("b"))
	accepts(t, netip.MustParseAddr("fe80::1%eth0"), netip.MustParseAddr("fe80::1%eth0"), netip.MustParseAddr("fe80::1"))
}

func TestInvalidOptions(t *testing.T) {
	q := workqueue.New(&workqueue.Options[float64]{
		Name:    "pods",
		Backoff: retry.Backoff{Base: -1},
		Park:    workqueue.Park{Attempts: -1, Age: -1},
	})
	_, err := q.Get(t.Context())
	require.ErrorIs(t, err, workqueue.ErrInvalidOptions)
	require.ErrorIs(t, err, workqueue.ErrBadKey)
	require.ErrorIs(t, err, retry.ErrInvalidOptions)
	for _, part := range []string{`"pods"`, "float64", "Base", "Park.Attempts -1", "Park.Age -1ns"} {
		require.ErrorContains(t, err, part)
	}
	joined := err.(interface{ Unwrap() []error }).Unwrap()
	require.Len(t, joined, 4)
	for _, e := range joined {
		require.ErrorIs(t, e, workqueue.ErrInvalidOptions)
	}

	fine := workqueue.New[string](nil)
	defer fine.Abort()
	err = fine.Run(t.Context(), 0, func(context.Context, string) error { return nil })
	require.ErrorIs(t, err, workqueue.ErrInvalidOptions)
	require.ErrorContains(t, err, `"queue": 0 workers`)
	require.ErrorIs(t, fine.Run(t.Context(), 1, nil), workqueue.ErrInvalidOptions)

	opts := &workqueue.Options[string]{Name: "x"}
	q2 := workqueue.New(opts)
	opts.Park.Attempts = -1 // the queue has its own copy
	q2.Add("a")
	require.Equal(t, "a", get(t, q2))
	q2.Abort()
}
