package nats_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/internal/stores/nats"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// isFault: "bad" in the version v, and nothing else, cannot be read.
func isFault(t *testing.T, v object.Version, faults []reflector.Fault) {
	t.Helper()
	require.Len(t, faults, 1)
	require.Equal(t, "bad", faults[0].Key)
	require.Equal(t, v, faults[0].Version)
	require.ErrorContains(t, faults[0].Err, `object "bad"`)
}

// raw writes past the Store.
func raw(t *testing.T, js jetstream.JetStream, bucket string) func(key, value string) object.Version {
	kv, err := js.KeyValue(t.Context(), bucket)
	require.NoError(t, err)
	return func(key, value string) object.Version {
		t.Helper()
		seq, err := kv.PutString(t.Context(), token(key), value)
		require.NoError(t, err)
		return object.Version(strconv.FormatUint(seq, 10))
	}
}

// streamed takes the batches of a full state.
func streamed(t *testing.T, s *nats.Store[int]) (all []reflector.Batch[int]) {
	t.Helper()
	for b, err := range s.Watch(within(t, long), reflector.WatchOptions{Initial: true}) {
		require.NoError(t, err)
		b.Events = slices.Clone(b.Events)
		if all = append(all, b); b.Synced {
			return all
		}
	}
	t.Fatal("the full state has no end")
	return nil
}

func TestFaults_NameWhatTheCodecCannotRead(t *testing.T) {
	js := harness(t)
	s, name := open[int](t, js, 5)
	put := raw(t, js, name)
	put("a", "1")
	v := put("bad", "{")
	put("c", "3")

	page, err := s.List(within(t, long), reflector.ListOptions{})
	require.NoError(t, err)
	require.Len(t, page.Items, 2)
	isFault(t, v, page.Faults)
	full := streamed(t, s)
	require.Len(t, full, 1)
	require.Len(t, full[0].Events, 2)
	isFault(t, v, full[0].Faults)

	_, err = s.Get(t.Context(), "bad")
	require.ErrorContains(t, err, `object "bad"`)
	require.NotErrorIs(t, err, backend.ErrNotFound)

	var got []reflector.Batch[int]
	for b, err := range s.Watch(within(t, long), reflector.WatchOptions{After: page.Cursor}) {
		require.NoError(t, err)
		if got = append(got, b); len(got) == 3 {
			break
		}
		if len(got) == 1 {
			v = put("bad", "[")
			_, err := s.Delete(t.Context(), "bad", v)
			require.NoError(t, err, "what cannot be read can be deleted")
		}
	}
	require.Empty(t, got[1].Events)
	isFault(t, v, got[1].Faults)
	require.Equal(t, page.Cursor, got[1].Prev)
	require.Equal(t, got[1].Cursor, got[2].Prev)
	require.Empty(t, got[2].Faults)
	require.Equal(t, reflector.OpDelete, got[2].Events[0].Op)
	require.False(t, got[2].Events[0].Known)
}

// The history has a key in many states: the last one counts, and no batch has it in
// two.
func TestFaults_OfTheHistoryAreNotThoseOfNow(t *testing.T) {
	js := harness(t)
	s, name := open[int](t, js, 5)
	put := raw(t, js, name)
	for _, value := range []string{"1", "{", "2", "{", "3"} {
		put("repaired", value)
	}
	put("deleted", "{")
	_, err := s.Delete(t.Context(), "deleted", object.Any)
	require.NoError(t, err)
	put("bad", "1")
	v := put("bad", "{")

	page, err := s.List(within(t, long), reflector.ListOptions{})
	require.NoError(t, err)
	require.Len(t, page.Items, 1)
	require.Equal(t, 3, page.Items[0].Object)
	isFault(t, v, page.Faults)

	items, faults := map[string]int{}, map[string]object.Version{}
	for _, b := range streamed(t, s) {
		for _, f := range b.Faults {
			delete(items, f.Key)
			faults[f.Key] = f.Version
			for _, e := range b.Events {
				require.NotEqual(t, f.Key, e.Key)
			}
		}
		for _, e := range b.Events {
			delete(faults, e.Key)
			delete(items, e.Key)
			if e.Op == reflector.OpPut {
				items[e.Key] = e.Object
			}
		}
	}
	require.Equal(t, map[string]int{"repaired": 3}, items)
	require.Equal(t, map[string]object.Version{"bad": v}, faults)

	cache := run(t, s)
	refuses(t, cache, "bad")
	converges(t, cache, state(t, s))
}

func TestFaults_AreRefusedUntilTheyAreRepaired(t *testing.T) {
	js := harness(t)
	s, name := open[int](t, js, 5)
	put := raw(t, js, name)
	put("bad", "{")
	put("good", "1")
	cache := run(t, s)
	require.NoError(t, cache.WaitForSync(within(t, long)))
	refuses(t, cache, "bad") // from the full state
	converges(t, cache, state(t, s))
	put("good", "{") // by the watch
	put("other", "2")
	refuses(t, cache, "bad", "good")
	was, _ := cache.Cache().Get("good")
	require.Equal(t, 1, was, "the last good state is kept")

	_, err := s.Update(t.Context(), object.Item[int]{Key: "good", Version: object.Any, Object: 3})
	require.NoError(t, err, "what cannot be read can be replaced")
	put("bad", "4")
	refuses(t, cache)
	want := state(t, s)
	require.Len(t, want, 3)
	converges(t, cache, want)
}

// refuses waits until just these keys are refused.
func refuses(t *testing.T, i *informer.Informer[int], keys ...string) {
	t.Helper()
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		refused := i.Status().Refused
		assert.Len(t, refused, len(keys))
		for _, key := range keys {
			assert.ErrorIs(t, refused[key], reflector.ErrUnreadable)
		}
	}, long, 5*time.Millisecond)
}
