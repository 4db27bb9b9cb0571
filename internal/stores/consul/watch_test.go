package consul_test

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/internal/stores/consul"
	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/retry"
	"github.com/stretchr/testify/require"
)

// script answers one query after the other with the next index, and one key whose
// value is that index. Then it blocks.
type script struct {
	indexes []string

	mu    sync.Mutex
	asked []string // the index that each query waited for; "" did not wait
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	n := len(s.asked)
	s.asked = append(s.asked, r.URL.Query().Get("index"))
	s.mu.Unlock()
	if n >= len(s.indexes) {
		<-r.Context().Done()
		return
	}
	w.Header().Set("X-Consul-Index", s.indexes[n])
	i, _ := strconv.Atoi(s.indexes[n])
	fmt.Fprintf(w, `[{"Key":"shop/a","Value":"eyJOIjo%s","CreateIndex":1,"ModifyIndex":%d}]`, digit(i), i)
}

// digit ends the base64 of {"N":i}, for one digit.
func digit(i int) string {
	return []string{"wfQ==", "xfQ==", "yfQ==", "zfQ==", "0fQ==", "1fQ==", "2fQ==", "3fQ==", "4fQ==", "5fQ=="}[i]
}

func (s *script) questions() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.asked...)
}

func scripted(t *testing.T, indexes ...string) (*script, *consul.Store[flag]) {
	t.Helper()
	s := &script{indexes: indexes}
	client, url := serve(t, s)
	return s, consul.New[flag](client, url, prefix, nil, nil)
}

func TestR09_IndexGoesBack(t *testing.T) {
	s, store := scripted(t, "7", "9", "3", "4")
	got, err := take(t, store, reflector.WatchOptions{Initial: true}, 4)
	require.NoError(t, err)
	var cursors []reflector.Cursor
	for _, b := range got {
		require.True(t, b.Reset && b.Synced)
		require.Equal(t, string(b.Cursor), fmt.Sprint(b.Events[0].Object.N))
		cursors = append(cursors, b.Cursor)
	}
	require.Equal(t, []reflector.Cursor{"7", "9", "3", "4"}, cursors)
	require.Equal(t, []string{"", "7", "9", ""}, s.questions(), "after 3 nothing is waited for")
}

func TestR09_IndexZeroIsNeverWaitedFor(t *testing.T) {
	s, store := scripted(t, "0")
	got, err := take(t, store, reflector.WatchOptions{Initial: true}, 0)
	require.Error(t, err)
	require.Len(t, got, 1, "what was answered is shown")
	require.Empty(t, got[0].Cursor)
	require.Equal(t, []string{""}, s.questions())

	// An informer over it asks at the rate of its backoff.
	zeros := make([]string, 1000)
	for i := range zeros {
		zeros[i] = "0"
	}
	s, store = scripted(t, zeros...)
	inf := follow(t, store, &informer.Options{Backoff: retry.Backoff{Schedule: []time.Duration{time.Millisecond, time.Hour}}})
	require.NoError(t, inf.WaitForSync(soon(t)))
	require.Eventually(t, func() bool { return inf.Status().Source.Failures == 2 }, time.Minute, time.Millisecond)
	for _, q := range s.questions() {
		require.Empty(t, q)
	}
	require.Len(t, s.questions(), 2)
}

func TestWatchTellsFullStates(t *testing.T) {
	srv, store := open(t, nil)
	srv.Apply(set(t, "a", 1), set(t, "b", 1))
	got, err := take(t, store, reflector.WatchOptions{Initial: true}, 3, func(got int) {
		switch got {
		case 1:
			srv.Apply(set(t, "a", 2), unset("b"), set(t, "c", 2)) // one step
		case 2:
			srv.Apply(unset("a"), unset("c"))
		}
	})
	require.NoError(t, err)
	require.Equal(t, map[string]int{"a": 1, "b": 1}, keys(got[0]))
	require.Equal(t, map[string]int{"a": 2, "c": 2}, keys(got[1]))
	require.Empty(t, keys(got[2]))
	require.Equal(t, []reflector.Cursor{"11", "12", "13"}, []reflector.Cursor{got[0].Cursor, got[1].Cursor, got[2].Cursor})
}

func TestWatchAfterACursorWaits(t *testing.T) {
	srv, store := open(t, nil)
	srv.Apply(set(t, "a", 1))
	page, err := store.List(t.Context(), reflector.ListOptions{})
	require.NoError(t, err)
	srv.Apply(consulOther(t)) // another prefix is none of ours
	got, err := take(t, store, reflector.WatchOptions{After: page.Cursor}, 2, func(int) { srv.Apply(set(t, "a", 2)) })
	require.NoError(t, err)
	require.Equal(t, reflector.Bookmark[flag](page.Cursor), got[0])
	require.Equal(t, map[string]int{"a": 2}, keys(got[1]))
	require.True(t, got[1].Reset && got[1].Synced)
}

func TestProgressBySpuriousAnswersAndByWait(t *testing.T) {
	srv, store := open(t, nil)
	srv.Apply(set(t, "a", 1))
	got, err := take(t, store, reflector.WatchOptions{Initial: true, ProgressEvery: 20 * time.Millisecond}, 3)
	require.NoError(t, err)
	require.Equal(t, []reflector.Batch[flag]{{Cursor: "11"}, {Cursor: "11"}}, got[1:])

	stop := make(chan struct{})
	done := make(chan struct{})
	go func() { // it can't be seen when a query has begun to wait
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				srv.Wake()
			}
		}
	}()
	got, err = take(t, store, reflector.WatchOptions{Initial: true}, 2)
	close(stop)
	<-done
	require.NoError(t, err)
	require.Equal(t, reflector.Bookmark[flag]("11"), got[1])
}

// A delete that is forgotten takes the index back, with no restore at all. A watch
// that waits learns of it when its time is over.
func TestForgottenDelete(t *testing.T) {
	srv, store := open(t, nil)
	srv.Apply(set(t, "a", 1))
	srv.Apply(set(t, "b", 1)) // 12
	got, err := take(t, store, reflector.WatchOptions{Initial: true, ProgressEvery: 20 * time.Millisecond}, 2, func(got int) {
		srv.Apply(unset("b"))
		srv.Reap()
	})
	require.NoError(t, err)
	require.Equal(t, reflector.Cursor("11"), got[1].Cursor)
	require.Equal(t, map[string]int{"a": 1}, keys(got[1]))
}

// Why no watch is resumed: the same index, another history. It is told when the
// query's time is over.
func TestR31_SameIndexOfAnotherHistory(t *testing.T) {
	srv, store := open(t, nil)
	srv.Apply(set(t, "a", 1))
	snap := srv.Snapshot()
	srv.Apply(set(t, "a", 2))
	page, err := store.List(t.Context(), reflector.ListOptions{})
	require.NoError(t, err)
	srv.Restore(snap, false)
	srv.Apply(set(t, "a", 3))
	got, err := take(t, store, reflector.WatchOptions{After: page.Cursor, ProgressEvery: 10 * time.Millisecond}, 2)
	require.NoError(t, err)
	require.Equal(t, page.Cursor, got[1].Cursor)
	require.Equal(t, map[string]int{"a": 3}, keys(got[1]))
	require.False(t, store.Powers().ResumeProven)
}

// A delete that was forgotten before anybody asked leaves the index where it was.
func TestR12_DeleteForgottenBeforeItWasTold(t *testing.T) {
	srv, store := open(t, nil)
	srv.Apply(set(t, "b", 1))
	srv.Apply(set(t, "a", 1)) // 12
	got, err := take(t, store, reflector.WatchOptions{Initial: true, ProgressEvery: 10 * time.Millisecond}, 2, func(int) {
		srv.Apply(unset("b"))
		srv.Reap()
	})
	require.NoError(t, err)
	require.Equal(t, []reflector.Cursor{"12", "12"}, []reflector.Cursor{got[0].Cursor, got[1].Cursor})
	require.Equal(t, map[string]int{"a": 1}, keys(got[1]))
}

func TestStaleReads(t *testing.T) {
	srv, store := open(t, &consul.Options{Stale: true})
	srv.Apply(set(t, "a", 1))
	srv.Lag()
	srv.Apply(set(t, "a", 2))
	require.True(t, store.Powers().StaleLists)
	page, err := store.List(t.Context(), reflector.ListOptions{})
	require.NoError(t, err)
	require.Equal(t, 1, page.Items[0].Object.N)
	page, err = store.List(t.Context(), reflector.ListOptions{NotBefore: "12"})
	require.NoError(t, err)
	require.Equal(t, 2, page.Items[0].Object.N)
	item, err := store.Get(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, 2, item.Object.N)
}
