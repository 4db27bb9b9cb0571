package informer_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/backend/memory"
	"github.com/homeostat/homeostat/fake"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// D09: readers, however many and however slow, do not hold up the writer.
func TestD09_ReadersDoNotStarveTheWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const readers, writes = 64, 20_000
		store := memory.New[int](&memory.Options{History: writes + 100})
		for n := range 100 {
			store.Create(t.Context(), fmt.Sprint("k", n), n)
		}
		inf := informer.New[int](store, nil)
		go inf.Run(t.Context())
		if err := inf.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		release := make(chan struct{})
		var reading sync.WaitGroup
		for range readers {
			reading.Go(func() {
				sum := 0
				for range inf.Cache().All() {
					if sum++; sum == 50 {
						<-release // in the middle of it
					}
				}
				if sum != 100 {
					t.Errorf("a reader saw %d of 100 objects", sum)
				}
			})
		}
		synctest.Wait()
		for n := range writes {
			key := fmt.Sprint("k", n%100)
			if n%200 < 100 {
				store.Delete(t.Context(), key, object.Any)
			} else {
				store.Create(t.Context(), key, n)
			}
		}
		synctest.Wait()
		for n := range 100 {
			want, err := store.Get(t.Context(), fmt.Sprint("k", n))
			got, ok := inf.Cache().Item(want.Key)
			if err != nil || !ok || got != want {
				t.Fatalf("k%d: %v in the cache, %v in the store (%v)", n, got, want, err)
			}
		}
		close(release)
		reading.Wait()
	})
}

// D13: a transform sees each object that comes from the source once, before anybody
// else, and nothing besides: no tombstone, and nothing that the cache holds.
func TestD13_TransformRunsOncePerObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type box struct {
			n     int
			times int
		}
		var seed []object.Item[*box]
		for n := range 100 {
			seed = append(seed, object.Item[*box]{Key: fmt.Sprint("k", n), Object: &box{n: n}})
		}
		b := fake.New(fake.Plan{}, seed...)
		var mu sync.Mutex
		calls := 0
		src := reflector.Transform(b, func(in *box) *box {
			mu.Lock()
			defer mu.Unlock()
			calls++
			return &box{n: in.n, times: in.times + 1}
		})
		called := func() int {
			mu.Lock()
			defer mu.Unlock()
			return calls
		}
		inf := informer.New(src, nil)
		gone := 0
		inf.AddHandler(func(c informer.Change[*box]) {
			mu.Lock()
			defer mu.Unlock()
			if o := c.Object(); o.times != 1 {
				t.Errorf("%v %s was transformed %d times", c.Type, c.Key, o.times)
			}
			if c.Type == informer.Deleted {
				gone++
			}
		}, nil)
		go inf.Run(t.Context())
		synctest.Wait()
		if n := called(); n != 100 {
			t.Errorf("%d calls for 100 objects", n)
		}
		b.Update(t.Context(), object.Item[*box]{Key: "k1", Version: object.Any, Object: &box{n: 1}})
		b.Delete(t.Context(), "k2", object.Any)
		synctest.Wait()
		if n := called(); n != 101 {
			t.Errorf("%d calls after an update and a delete", n)
		}
		b.Delete(t.Context(), "k3", object.Any)
		inf.Relist("test")
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := called(); n != 101+98 {
			t.Errorf("%d calls after a relist of 98", n)
		}
		mu.Lock()
		defer mu.Unlock()
		if gone != 2 {
			t.Errorf("%d deletes were told", gone)
		}
	})
}
