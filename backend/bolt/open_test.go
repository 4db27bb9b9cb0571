package bolt_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/backend/bolt"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/retry"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
)

func TestOptions(t *testing.T) {
	cases := []struct {
		name string
		opts *bolt.Options
		err  string
	}{
		{"none", nil, ""},
		{"zero", &bolt.Options{}, ""},
		{"least", &bolt.Options{History: 1, Timeout: 1}, ""},
		{"do not wait", &bolt.Options{Timeout: -1}, ""},
		{"a negative history", &bolt.Options{History: -1}, "History is -1"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "pods.db")
			s, err := bolt.Open[pod](path, nil, c.opts)
			if c.err != "" {
				require.ErrorIs(t, err, bolt.ErrInvalidOptions)
				require.ErrorIs(t, err, reflector.ErrInvalidOptions)
				require.ErrorContains(t, err, c.err)
				require.NoFileExists(t, path)
				return
			}
			require.NoError(t, err)
			require.NoError(t, s.Close())
		})
	}
}

// TestTwoOpensOfOneFile: the second is told, after the time that it gave, and gets
// the file as soon as the first one has closed it.
func TestTwoOpensOfOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pods.db")
	s := opened(t, path, nil)
	must(s.Create(t.Context(), "a", pod{N: 1}))
	for _, timeout := range []time.Duration{-1, time.Millisecond, 200 * time.Millisecond} {
		began := time.Now()
		_, err := bolt.Open[pod](path, nil, &bolt.Options{Timeout: timeout})
		require.ErrorIs(t, err, bolt.ErrLocked)
		require.ErrorContains(t, err, path)
		require.Less(t, time.Since(began), 5*time.Second)
	}
	require.Len(t, list(t, s).Items, 1, "the first is not disturbed")

	second := make(chan error)
	go func() {
		s, err := bolt.Open[pod](path, nil, &bolt.Options{Timeout: time.Minute})
		if err == nil {
			err = s.Close()
		}
		second <- err
	}()
	require.NoError(t, s.Close())
	require.NoError(t, <-second)
}

// TestFilesThatAreNone: each error says which file, and leaves it as it is.
func TestFilesThatAreNone(t *testing.T) {
	foreign := func(path string, fill func(tx *bbolt.Tx) error) {
		db := must(bbolt.Open(path, 0o600, nil))
		must(0, db.Update(fill))
		must(0, db.Close())
	}
	whole := func(path string) {
		s := must(bolt.Open[pod](path, nil, nil))
		bolt.NoSync(s)
		for i := range 300 {
			must(s.Create(t.Context(), strconv.Itoa(i), pod{N: i}))
		}
		must(0, s.Close())
	}
	edited := func(path string, edit func(root *bbolt.Bucket) error) {
		whole(path)
		foreign(path, func(tx *bbolt.Tx) error { return edit(tx.Bucket([]byte("homeostat"))) })
	}
	cases := []struct {
		name string
		make func(path string)
		err  error
		text string
	}{
		{"text", func(path string) { must(0, os.WriteFile(path, []byte("hello"), 0o600)) }, bolt.ErrCorrupt, "invalid database"},
		{"a lot of text", func(path string) { must(0, os.WriteFile(path, make([]byte, 1<<20), 0o600)) }, bolt.ErrCorrupt, "invalid database"},
		{"a directory", func(path string) { must(0, os.Mkdir(path, 0o700)) }, nil, ""},
		{"no directory", func(path string) { must(0, os.RemoveAll(filepath.Dir(path))) }, os.ErrNotExist, ""},
		{"somebody else's", func(path string) {
			foreign(path, func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("theirs")); return err })
		}, bolt.ErrFormat, `"theirs"`},
		{"somebody else's under our name", func(path string) {
			foreign(path, func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("homeostat")); return err })
		}, bolt.ErrFormat, "it has none"},
		{"a newer format", func(path string) {
			edited(path, func(root *bbolt.Bucket) error { return root.Put([]byte("format"), []byte("2")) })
		}, bolt.ErrFormat, `format "2", this version knows "1"`},
		{"no epoch", func(path string) {
			edited(path, func(root *bbolt.Bucket) error { return root.Delete([]byte("epoch")) })
		}, bolt.ErrCorrupt, "no epoch"},
		{"no revision", func(path string) {
			edited(path, func(root *bbolt.Bucket) error { return root.Delete([]byte("revision")) })
		}, bolt.ErrCorrupt, "incomplete"},
		{"no objects", func(path string) {
			edited(path, func(root *bbolt.Bucket) error { return root.DeleteBucket([]byte("objects")) })
		}, bolt.ErrCorrupt, "incomplete"},
		{"a history with its end cut off", func(path string) {
			edited(path, func(root *bbolt.Bucket) error {
				h := root.Bucket([]byte("history"))
				last, _ := h.Cursor().Last()
				return h.Delete(last)
			})
		}, bolt.ErrCorrupt, "history"},
		{"cut off", func(path string) { whole(path); must(0, os.Truncate(path, 3*4096)) }, bolt.ErrCorrupt, ""},
		{"cut off in the first page", func(path string) { whole(path); must(0, os.Truncate(path, 100)) }, bolt.ErrCorrupt, ""},
		{"overwritten", func(path string) {
			whole(path)
			f := must(os.OpenFile(path, os.O_RDWR, 0))
			must(f.WriteAt(make([]byte, must(f.Stat()).Size()-2*4096), 2*4096))
			must(0, f.Close())
		}, bolt.ErrCorrupt, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if runtime.GOOS == "windows" && c.err == bolt.ErrCorrupt && c.text == "" {
				t.Skip("a damaged file stays mapped, and can't be removed")
			}
			path := filepath.Join(t.TempDir(), "sub", "pods.db")
			require.NoError(t, os.Mkdir(filepath.Dir(path), 0o700))
			c.make(path)
			for range 2 { // the first one lets go of it
				s, err := bolt.Open[pod](path, nil, &bolt.Options{Timeout: -1})
				require.Error(t, err)
				require.Nil(t, s)
				if c.err != nil {
					require.ErrorIs(t, err, c.err)
				}
				require.ErrorContains(t, err, c.text)
				require.ErrorContains(t, err, path)
			}
		})
	}
}

// TestRecordsThatAreNone: bytes that we did not write are an error that names the
// object or the revision, wherever they are come upon.
func TestRecordsThatAreNone(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "pods.db")
	s := opened(t, path, nil)
	start := cursorOf(t, s)
	must(s.Create(ctx, "a", pod{N: 1}))
	must(s.Create(ctx, "b", pod{N: 2}))
	page := must(s.List(ctx, reflector.ListOptions{Limit: 1}))
	must(s.Create(ctx, "c", pod{N: 3}))
	require.NoError(t, s.Close())
	long := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}
	for _, bad := range [][]byte{{}, {1}, []byte("no such thing"), append(make([]byte, 8), long...), long, make([]byte, 40)} {
		db := must(bbolt.Open(path, 0o600, nil))
		must(0, db.Update(func(tx *bbolt.Tx) error {
			root := tx.Bucket([]byte("homeostat"))
			return errors.Join(root.Bucket([]byte("objects")).Put([]byte("b"), append([]byte{0xff}, bad...)),
				root.Bucket([]byte("history")).Put([]byte{0, 0, 0, 0, 0, 0, 0, 3}, bad))
		}))
		must(0, db.Close())
		s := opened(t, path, nil)
		_, get := s.Get(ctx, "b")
		_, list := s.List(ctx, reflector.ListOptions{})
		_, update := s.Update(ctx, item{Key: "b", Version: object.Any})
		_, deleted := s.Delete(ctx, "b", object.Any)
		for _, err := range []error{get, list, update, deleted} {
			require.ErrorIs(t, err, bolt.ErrCorrupt)
			require.ErrorContains(t, err, `"b"`)
		}
		_, next := s.List(ctx, reflector.ListOptions{Page: page.Next})
		var watch error
		for _, watch = range s.Watch(ctx, reflector.WatchOptions{After: start}) {
		}
		for _, err := range []error{next, watch} {
			require.ErrorIs(t, err, bolt.ErrCorrupt, "%q", bad)
			require.ErrorContains(t, err, "revision 3")
		}
		require.Equal(t, 1, must(s.Get(ctx, "a")).Object.N, "the rest is there")
		require.NoError(t, s.Close())
	}
}

// TestDamageShowsWhereItIsRead: a page that is overwritten under a store that is
// open is an error of the calls that need it, and no crash.
func TestDamageShowsWhereItIsRead(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a damaged file stays mapped, and can't be removed")
	}
	path := filepath.Join(t.TempDir(), "pods.db")
	s := opened(t, path, nil)
	for i := range 2000 {
		must(s.Create(t.Context(), strconv.Itoa(i), pod{N: i}))
	}
	f := must(os.OpenFile(path, os.O_RDWR, 0))
	must(f.WriteAt(make([]byte, must(f.Stat()).Size()-2*4096), 2*4096))
	must(0, f.Close())
	_, err := s.Get(t.Context(), "7")
	require.ErrorIs(t, err, bolt.ErrCorrupt)
	_, err = s.List(t.Context(), reflector.ListOptions{})
	require.ErrorIs(t, err, bolt.ErrCorrupt)
	_, err = s.Update(t.Context(), item{Key: "7", Version: object.Any})
	require.Error(t, err)
	for _, err := range s.Watch(t.Context(), reflector.WatchOptions{}) {
		require.Error(t, err)
	}
}

func TestClose(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "pods.db")
	s := opened(t, path, nil)
	a := must(s.Create(ctx, "a", pod{N: 1}))
	p := s.Powers()
	head := cursorOf(t, s)

	var watching sync.WaitGroup
	open := make(chan struct{}, 3)
	for range cap(open) {
		watching.Go(func() {
			var last error
			for _, err := range s.Watch(ctx, reflector.WatchOptions{}) {
				if last = err; err == nil {
					open <- struct{}{}
				}
			}
			if !errors.Is(last, bolt.ErrClosed) {
				t.Errorf("a watch ended with %v", last)
			}
		})
	}
	for range cap(open) {
		<-open
	}
	var closing sync.WaitGroup
	for range 3 {
		closing.Go(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	closing.Wait()
	watching.Wait()
	require.NoError(t, s.Close())

	_, list := s.List(ctx, reflector.ListOptions{})
	_, page := s.List(ctx, reflector.ListOptions{Page: "x/1/a"})
	_, get := s.Get(ctx, "a")
	_, create := s.Create(ctx, "b", pod{})
	_, update := s.Update(ctx, a)
	_, patched := s.Patch(ctx, "a", merge(`{}`), object.Any)
	_, deleted := s.Delete(ctx, "a", object.Any)
	_, tried := must(s.DryRun()).Create(ctx, "b", pod{})
	_, position := p.Head(ctx)
	compact := s.Compact(ctx)
	var resumed, streamed error
	for _, resumed = range s.Watch(ctx, reflector.WatchOptions{After: head}) {
	}
	for _, streamed = range s.Watch(ctx, reflector.WatchOptions{}) {
	}
	for _, err := range []error{list, page, get, create, update, patched, deleted, tried, position, compact, resumed, streamed} {
		require.ErrorIs(t, err, bolt.ErrClosed)
		require.True(t, retry.IsPermanent(err))
	}
	require.True(t, p.Reached(head, a.Version), "what needs no file still works")
}

// TestCloseWithinAWatch: it does not wait for the one who ranges, who may be the
// one that closes.
func TestCloseWithinAWatch(t *testing.T) {
	s := fresh(t, nil)
	var last error
	for _, err := range s.Watch(t.Context(), reflector.WatchOptions{}) {
		if last = err; err == nil {
			require.NoError(t, s.Close())
		}
	}
	require.ErrorIs(t, last, bolt.ErrClosed)
}

// TestCloseUnderWrites: each write is either acknowledged, and there afterwards, or
// refused.
func TestCloseUnderWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pods.db")
	s := opened(t, path, nil)
	var wg sync.WaitGroup
	acked := make([]int, 8)
	some := make(chan struct{}, 100_000)
	for w := range acked {
		wg.Go(func() {
			for {
				_, err := s.Create(context.Background(), strconv.Itoa(w)+"/"+strconv.Itoa(acked[w]), pod{})
				if err != nil {
					if !errors.Is(err, bolt.ErrClosed) {
						t.Error(err)
					}
					return
				}
				acked[w]++
				some <- struct{}{}
			}
		})
	}
	for range 200 {
		<-some
	}
	require.NoError(t, s.Close())
	wg.Wait()
	s = opened(t, path, nil)
	n := 0
	for _, a := range acked {
		n += a
	}
	require.Len(t, list(t, s).Items, n)
	require.True(t, s.Powers().Reached(cursorOf(t, s), object.Version(strconv.Itoa(n))))
}

// TestRestart: objects, versions, IDs, cursors and page tokens are those of before.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		path := filepath.Join(t.TempDir(), "pods.db")
		s := opened(t, path, nil)
		start := cursorOf(t, s)
		must(s.Create(ctx, "gone", pod{}))
		a := must(s.Create(ctx, "a", pod{N: 1, Tags: map[string]string{"x": "y"}}))
		must(s.Create(ctx, "b", pod{N: 2}))
		must(s.Delete(ctx, "gone", object.Any))
		before := list(t, s)
		told1 := must(told(t, s, reflector.WatchOptions{After: start}))
		first := must(s.List(ctx, reflector.ListOptions{Limit: 1}))
		compareBefore := s.Powers().Compare

		for range 3 {
			require.NoError(t, s.Close())
			s = opened(t, path, nil)
			require.Equal(t, before, list(t, s))
			require.Equal(t, before.Cursor, cursorOf(t, s))
			require.Equal(t, told1, must(told(t, s, reflector.WatchOptions{After: start})))
			second := must(s.List(ctx, reflector.ListOptions{Page: first.Next}))
			require.Equal(t, before.Items[1:], second.Items)
		}
		got, err := s.Update(ctx, item{Key: "a", Version: a.Version, ID: a.ID, Object: pod{N: 5}})
		require.NoError(t, err)
		require.Equal(t, item{Key: "a", Version: "5", ID: a.ID, Object: pod{N: 5}}, got)
		require.Negative(t, compareBefore(before.Cursor, cursorOf(t, s)))
		batches := must(told(t, s, reflector.WatchOptions{After: before.Cursor}))
		require.Len(t, batches, 2, "exactly what came after")
		require.Equal(t, before.Cursor, batches[1].Prev)
	})
}

// TestNewEpoch: a file restored from a backup is at an earlier revision than what
// others were told, R08; with NewEpoch it says so.
func TestNewEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		dir := t.TempDir()
		path := filepath.Join(dir, "pods.db")
		s := opened(t, path, nil)
		a := must(s.Create(ctx, "a", pod{N: 1}))
		backup := cursorOf(t, s)
		require.NoError(t, s.Close())
		data := must(os.ReadFile(path))
		s = opened(t, path, nil)
		lost := must(s.Update(ctx, item{Key: "a", Version: a.Version, Object: pod{N: 2}}))
		later := cursorOf(t, s)
		page := must(s.List(ctx, reflector.ListOptions{Limit: 1}))
		require.NoError(t, s.Close())
		require.NoError(t, os.WriteFile(path, data, 0o600))

		s = opened(t, path, &bolt.Options{NewEpoch: true})
		require.Equal(t, []item{a}, list(t, s).Items, "the objects are those of the backup")
		for _, c := range []reflector.Cursor{backup, later} {
			_, err := told(t, s, reflector.WatchOptions{After: c})
			require.ErrorIs(t, err, reflector.ErrExpired)
			require.Zero(t, s.Powers().Compare(c, cursorOf(t, s)))
			require.False(t, s.Powers().Reached(c, a.Version))
		}
		if page.Next != "" {
			_, err := s.List(ctx, reflector.ListOptions{Page: page.Next})
			require.ErrorIs(t, err, reflector.ErrExpired)
		}
		head := cursorOf(t, s)
		require.True(t, s.Powers().Reached(head, a.Version))
		other := must(s.Update(ctx, item{Key: "a", Version: a.Version, ID: a.ID, Object: pod{N: 3}}))
		require.Equal(t, a.ID, other.ID)
		require.NotEqual(t, lost.Version, other.Version, "no version names two states")
		require.Len(t, must(told(t, s, reflector.WatchOptions{After: head})), 2)

		require.NoError(t, s.Close())
		s = opened(t, path, nil)
		require.Len(t, must(told(t, s, reflector.WatchOptions{After: head})), 2, "the new epoch stays")
	})
}
