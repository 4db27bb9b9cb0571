package fake_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/backend/memory"
	"github.com/homeostat/homeostat/fake"
	"github.com/homeostat/homeostat/indexer"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/patch"
	"github.com/homeostat/homeostat/reflector"
	"github.com/stretchr/testify/require"
)

// F01: create, update and delete exactly between the list and the watch, in any
// order, with a history that reaches or not: the informer ends equal, each time.
func TestF01_AnInformerMissesNothingBetweenListAndWatch(t *testing.T) {
	runs := 1000
	if testing.Short() {
		runs = 100
	}
	for seed := range uint64(runs) {
		synctest.Test(t, func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("seed %d", seed)
				}
			}()
			r := rand.New(rand.NewPCG(seed, 6))
			b := listed(fake.Over(fake.Plan{}, memory.New[pod](&memory.Options{History: 1 + r.IntN(5)})))
			require.NoError(t, b.Seed(item{Key: "gone"}, item{Key: "old"}, item{Key: "stays"}))
			p := b.PauseAfter(fake.List)
			f := follow(t, b, nil)
			require.NoError(t, p.Wait(t.Context(), 1))
			steps := []func(){
				func() { must(b.Create(t.Context(), "new", pod{N: 1})) },
				func() { must(b.Update(t.Context(), item{Key: "old", Version: object.Any, Object: pod{N: 2}})) },
				func() { must(b.Delete(t.Context(), "gone", object.Any)) },
			}
			for _, i := range r.Perm(3) {
				steps[i]()
			}
			p.Release()
			after(10 * time.Second)
			f.equals(t, b)
			require.Len(t, f.told, 3)
		})
	}
}

// F04: a delete that waits for a finalizer is told as an update with a mark, and
// the last finalizer that goes is the delete.
func TestF04_SoftDeletionIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw := fake.New(fake.Plan{}, taggedItem{Key: "a", Object: tagged{Meta: object.Meta{Finalizers: []string{"x"}}}})
		b := backend.WithFinalizers[tagged](raw)
		var says []string
		inf := informer.New(b, nil)
		inf.AddHandler(func(c informer.Change[tagged]) {
			says = append(says, fmt.Sprintf("%v %v", c.Type, c.New.IsDeleting()))
		}, &informer.HandlerOptions{Inline: true})
		go inf.Run(t.Context())
		synctest.Wait()
		marked := must(b.Delete(t.Context(), "a", object.Any))
		synctest.Wait()
		_, err := b.Update(t.Context(), taggedItem{Key: "a", Version: marked.Version, Object: tagged{Meta: object.Meta{Finalizers: []string{"x", "y"}}}})
		require.ErrorIs(t, err, backend.ErrDeleting, "as a real system forbids it")
		marked.Object.Finalizers = nil
		must(b.Update(t.Context(), marked))
		synctest.Wait()
		require.Equal(t, []string{"added false", "updated true", "deleted false"}, says)
		_, err = raw.Get(t.Context(), "a")
		require.ErrorIs(t, err, backend.ErrNotFound)
	})
}

// F06: a patch through the fake is what package patch makes of it, over the corpora
// of that package: the same result, or the same error.
func TestF06_PatchesAreThoseOfPackagePatch(t *testing.T) {
	kinds := []struct {
		file string
		read func([]byte) (patch.Patch, error)
	}{{"json-merge.jsonl", patch.Merge}, {"json-patch.jsonl", patch.JSON}}
	for _, k := range kinds {
		done, failed := 0, 0
		for _, c := range corpus(t, k.file) {
			var doc bytes.Buffer // the store keeps the value, not the white space
			if json.Compact(&doc, c.Original) != nil {
				continue
			}
			p, err := k.read(c.Patch)
			if err != nil {
				continue // not a patch: nothing reaches the store
			}
			want, wantErr := p.Apply(doc.Bytes())
			b := fake.New(fake.Plan{}, object.Item[json.RawMessage]{Key: "a", Object: doc.Bytes()})
			got, err := b.Patch(t.Context(), "a", p, object.Any)
			if wantErr != nil {
				for _, is := range []error{patch.ErrPath, patch.ErrTestFailed, patch.ErrTooLarge, patch.ErrInvalidJSON, patch.ErrBadPatch} {
					require.Equal(t, errors.Is(wantErr, is), errors.Is(err, is), "%s: %v, want %v", c.Name, err, wantErr)
				}
				require.Error(t, err, c.Name)
				failed++
				continue
			}
			require.NoError(t, err, c.Name)
			require.Equal(t, stored(t, want), stored(t, got.Object), c.Name)
			require.Equal(t, got, must(b.Get(t.Context(), "a")), c.Name)
			require.Equal(t, stored(t, want) == stored(t, doc.Bytes()), got.Version == "1", "%s: what changes nothing is no write", c.Name)
			done++
		}
		require.Greater(t, done, 50, k.file)
		t.Logf("%s: %d results, %d errors", k.file, done, failed)
	}
}

// stored is a document as encoding/json writes it.
func stored(t *testing.T, doc json.RawMessage) string {
	t.Helper()
	text, err := json.Marshal(doc)
	require.NoError(t, err)
	return string(text)
}

type corpusCase struct {
	Name            string
	Original, Patch json.RawMessage
}

func corpus(t *testing.T, file string) (all []corpusCase) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "patch", "testdata", file))
	require.NoError(t, err)
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c corpusCase
		require.NoError(t, json.Unmarshal(lines.Bytes(), &c))
		all = append(all, c)
	}
	require.NoError(t, lines.Err())
	return all
}

// F07: a reader that is slower than the history is long is told so, and holds up
// nobody; one that is not gets everything.
func TestF07_ASlowReaderIsTold(t *testing.T) {
	b := fake.Over(fake.Plan{}, memory.New[pod](&memory.Options{History: 100}))
	start := must(b.Powers().Head(t.Context()))
	for _, burst := range []int{100, 300} { // the watch takes some from the history at a time
		told, last := 0, error(nil)
		for batch, err := range b.Watch(t.Context(), reflector.WatchOptions{After: start}) {
			if last = err; err != nil {
				break
			}
			if told += len(batch.Events); told == 0 {
				for i := range burst {
					put(t, b, fmt.Sprint(i), i)
				}
			}
			if told == burst {
				break
			}
		}
		if burst == 100 {
			require.NoError(t, last)
			require.Equal(t, 100, told)
		} else {
			require.ErrorIs(t, last, reflector.ErrExpired)
			require.Zero(t, told, "nothing is left out in silence")
		}
		start = must(b.Powers().Head(t.Context()))
	}
}

// F08: an index that is added at run time answers as a scan of what the informer
// has, while the store changes.
func TestF08_AnIndexAddedAtRunTimeEqualsAScan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := fake.New[pod](fake.Plan{})
		for i := range 100 {
			put(t, b, fmt.Sprint("k", i), i%7)
		}
		f := follow(t, b, nil)
		mine := indexer.New[pod]()
		f.AddHandler(into(t, mine), nil)
		synctest.Wait()
		byN := indexer.By("n", func(p pod) int { return p.N })
		require.NoError(t, mine.AddIndex(byN))
		r := rand.New(rand.NewPCG(1, 7))
		for round := range 20 {
			for range 30 {
				key := fmt.Sprint("k", r.IntN(100))
				if r.IntN(4) == 0 {
					b.Delete(t.Context(), key, object.Any)
				} else {
					put(t, b, key, r.IntN(7))
				}
			}
			synctest.Wait()
			scan := map[int][]string{}
			for key, p := range f.Cache().Sorted() {
				scan[p.N] = append(scan[p.N], key)
			}
			for n := range 7 {
				var got []string
				for key := range byN.Lookup(mine, n) {
					got = append(got, key)
				}
				slices.Sort(got)
				slices.Sort(scan[n])
				require.Equal(t, scan[n], got, "round %d", round)
			}
		}
	})
}

// into has an index of one's own follow an informer. Each handler deletes only what
// it was told of.
func into(t *testing.T, to *indexer.Indexer[pod]) func(informer.Change[pod]) {
	return func(c informer.Change[pod]) {
		if c.Type == informer.Deleted {
			to.Delete(c.Key)
		} else if err := to.Put(object.Item[pod]{Key: c.Key, Version: c.Version, Object: c.New}); err != nil {
			t.Error(err)
		}
	}
}

// W05: two sources feed one index, each through its own informer: when one lists
// nothing any more, the other's keys stay.
func TestW05_ARelistIsNobodyElsesBusiness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fake.New(fake.Plan{}, item{Key: "a/1"}, item{Key: "a/2"}), fake.New(fake.Plan{}, item{Key: "b/1"})
		both := indexer.New[pod]()
		fa, fb := follow(t, a, nil), follow(t, b, nil)
		fa.AddHandler(into(t, both), nil)
		fb.AddHandler(into(t, both), nil)
		synctest.Wait()
		require.Equal(t, 3, both.Len())

		a.Restore(nil, true) // it comes back empty
		after(10 * time.Second)
		require.Zero(t, fa.Cache().Len())
		require.Equal(t, 1, both.Len())
		_, ok := both.Get("b/1")
		require.True(t, ok)
		fb.Relist("test")
		put(t, a, "a/3", 1)
		after(10 * time.Second)
		require.Equal(t, 2, both.Len())
	})
}

// F11: with a lag, what reads the cache right after a write reads the past, unless
// it waits for its own write; and the same seed makes the same day.
func TestF11_LagBreaksWhatDoesNotWait(t *testing.T) {
	day := func(seed uint64, barrier bool) (fresh, reads int, trace []string) {
		synctest.Test(t, func(t *testing.T) {
			b := fake.New(fake.Plan{Seed: seed, Faults: []fake.Fault{
				{On: fake.Watch, Do: fake.Delay, For: 2 * time.Second},
				{Do: fake.Duplicate, OneIn: 4}, // and some other things
				{Do: fake.Reorder, OneIn: 7},
				{Do: fake.Silence, OneIn: 9, For: time.Second},
			}}, item{Key: "a"})
			f := follow(t, b, nil)
			require.NoError(t, f.WaitForSync(t.Context()))
			for i := range 10 {
				key := []string{"a", "b"}[i%2]
				it := put(t, b.As("writer"), key, i+1)
				if barrier {
					ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
					require.NoError(t, f.WaitFor(ctx, key, it.Version))
					cancel()
				}
				got, _ := f.Cache().Get(key)
				reads++
				if got.N == i+1 {
					fresh++
				}
				synctest.Wait()
				time.Sleep(time.Minute)
			}
			b.SetPlan(fake.Plan{})
			f.Relist("test")
			after(time.Minute)
			f.equals(t, b)
			trace = lines(b)
		})
		return fresh, reads, trace
	}
	fresh, reads, one := day(1, false)
	require.Equal(t, [2]int{0, 10}, [2]int{fresh, reads})
	fresh, reads, _ = day(1, true)
	require.Equal(t, [2]int{10, 10}, [2]int{fresh, reads})
	_, _, again := day(1, false)
	require.Equal(t, one, again)
	_, _, other := day(2, false)
	require.NotEqual(t, one, other)
	require.Contains(t, strings.Join(one, "\n"), ": delay")
}

// W03: the documented way to test, an informer over the fake, holds a thousand
// times.
func TestW03_TheDocumentedExampleAThousandTimes(t *testing.T) {
	runs := 1000
	if testing.Short() {
		runs = 100
	}
	for range runs {
		require.Equal(t, "Ann Bob\nann is gone\n", informerOverFake())
	}
}
