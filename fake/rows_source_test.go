package fake_test

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/backend/memory"
	"github.com/homeostat/homeostat/fake"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
	"github.com/stretchr/testify/require"
)

// R05: wherever it is said that history is gone, exactly one full list follows, and
// the watch goes on from there.
func TestR05_ExpiredOnEachPath(t *testing.T) {
	cases := []struct {
		name  string
		fault fake.Fault
		want  []string // from the answer that says so
	}{
		{"list", fake.Fault{On: fake.List, Do: fake.Expire, Call: 1}, []string{"list #1: expire", "list #2 at 3", "list #3 at 3", "watch #1 at 3"}},
		{"page", fake.Fault{On: fake.List, Do: fake.Expire, Call: 2}, []string{"list #2: expire", "list #3 at 3", "list #4 at 3", "watch #1 at 3"}},
		{"opening a watch", fake.Fault{On: fake.Watch, Do: fake.Expire, Call: 1}, []string{"watch #1 at 3: expire", "list #3 at 3", "list #4 at 3", "watch #2 at 3"}},
		{"in the stream", fake.Fault{Do: fake.Cut, Call: 1, Err: reflector.ErrExpired}, []string{"watch #1 at 3: cut", "list #3 at 3", "list #4 at 3", "watch #2 at 3"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := listed(fake.New(plan(c.fault), item{Key: "a"}, item{Key: "b"}, item{Key: "c"}))
				f := follow(t, b, &informer.Options{PageSize: 2})
				after(time.Minute)
				log := calledSince(b, 0)
				for len(log) > 0 && log[0] != c.want[0] {
					log = log[1:]
				}
				require.Equal(t, c.want, log)
				f.equals(t, b)
			})
		})
	}
}

// asked notes what lists are asked for.
type asked struct {
	*fake.Backend[pod]
	lists []reflector.ListOptions
}

func (a *asked) List(ctx context.Context, opts reflector.ListOptions) (reflector.Page[pod], error) {
	a.lists = append(a.lists, opts)
	return a.Backend.List(ctx, opts)
}

// R06: whatever went wrong before, a list asks for the latest, so that none can be
// expired for ever.
func TestR06_AListThatExpiresIsFollowedByOneThatWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := listed(fake.New(fake.Plan{}, item{Key: "a"}))
		src := &asked{Backend: b}
		f := follow(t, src, nil)
		after(time.Minute)
		begun := len(b.Log())
		b.SetPlan(plan(fake.Fault{On: fake.List, Do: fake.Expire, Call: 1}))
		f.Relist("test")
		after(time.Minute)
		require.Equal(t, []string{"list #2: expire", "list #3 at 1", "watch #2 at 1"}, calledSince(b, begun))
		for _, o := range src.lists {
			require.Equal(t, reflector.Latest, o.Freshness)
			require.Empty(t, o.NotBefore)
		}
		f.equals(t, b)
	})
}

// R07: what a lagging replica lists is refused, and nobody sees the past.
func TestR07_StaleListsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := listed(fake.New[pod](fake.Plan{}))
		for i := range 100 {
			put(t, b, "a", i)
		}
		f := follow(t, b, nil)
		after(time.Minute)
		f.says()
		b.SetPlan(plan(fake.Fault{On: fake.List, Do: fake.StaleRead, Call: 1, Back: 10}, fake.Fault{On: fake.List, Do: fake.StaleRead, Call: 2, Back: 3}))
		f.Relist("test")
		for range 50 {
			after(100 * time.Millisecond)
			it, ok := f.Cache().Item("a")
			require.True(t, ok)
			require.EqualValues(t, "100", it.Version)
		}
		require.Equal(t, []string{"list #1 at 100", "watch #1 at 100", "list #2 at 90: stale read", "list #3 at 97: stale read", "list #4 at 100", "watch #2 at 100"}, calledSince(b, 0))
		require.Empty(t, f.says(), "no handler either")
		require.Zero(t, f.Status().Source.Resets)
	})
}

// R08: a source that was set back is believed once it insists, or at once when it
// says so by its epoch; what it lost is deleted, and counted as one reset.
func TestR08_ARestoredSourceIsFollowed(t *testing.T) {
	for _, newEpoch := range []bool{false, true} {
		for _, streamed := range []bool{false, true} {
			t.Run(fmt.Sprintf("new epoch %v, streamed %v", newEpoch, streamed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := fake.New[pod](fake.Plan{})
					if !streamed {
						listed(b)
					}
					for i := range 40 {
						put(t, b, fmt.Sprint(i%4), i)
					}
					old := b.Snapshot()
					for i := range 460 {
						put(t, b, fmt.Sprint("new", i%3), i)
					}
					f := follow(t, b, &informer.Options{ResetAfter: 10 * time.Second})
					after(time.Minute)
					f.says()
					b.Restore(old, newEpoch)
					wait := 15 * time.Second // to insist
					if newEpoch {
						wait = 2 * time.Second // one backoff
					}
					after(wait)
					f.equals(t, b)
					require.ElementsMatch(t, []string{"deleted new0?", "deleted new1?", "deleted new2?"}, f.says())
					require.EqualValues(t, 1, f.Status().Source.Resets)
					put(t, b, "after", 1)
					synctest.Wait()
					f.equals(t, b)
				})
			})
		}
	}
}

// R10: a watch that is resumed where history is gone is no reason to begin at its
// oldest: what was deleted in between is found by a list.
func TestR10_DeletesBeforeACompactionAreFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := fake.New(fake.Plan{}, item{Key: "a"}, item{Key: "b"})
		f := follow(t, b, nil)
		after(time.Minute)
		f.says()
		p := b.PauseBefore(fake.Watch)
		b.Cut()
		require.NoError(t, p.Wait(t.Context(), 1)) // the watch that resumes
		must(b.Delete(t.Context(), "b", object.Any))
		put(t, b, "c", 1)
		b.Compact()
		put(t, b, "c", 2)
		p.Release()
		after(time.Minute)
		require.ElementsMatch(t, []string{"added c", "deleted b?"}, f.says())
		f.equals(t, b)
	})
}

// R11, N10: what a source drops, or tells in another order, shows in what it says
// came before: the next batch leads to a full state.
func TestR11_DropAndReorderShow(t *testing.T) {
	for _, effect := range []fake.Effect{fake.Drop, fake.Reorder} {
		t.Run(effect.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := fake.New(fake.Plan{}, item{Key: "a"}, item{Key: "b"})
				f := follow(t, b, nil)
				after(time.Minute)
				b.Cut()
				b.SetPlan(plan(fake.Fault{Do: effect, Call: 1}))
				after(10 * time.Second) // the session that will be struck
				must(b.Delete(t.Context(), "a", object.Any))
				put(t, b, "b", 7)
				after(10 * time.Second)
				f.equals(t, b)
				require.EqualValues(t, 1, f.Status().Source.Gaps)
			})
		})
	}
}

// R12, N10: what a source lost without knowing stays amiss until a full state is
// asked for, which repairs exactly that; where nothing is amiss nobody is called.
func TestR12_WhatNobodyNoticesARelistRepairs(t *testing.T) {
	for _, effect := range []fake.Effect{fake.Drop, fake.Reorder} {
		t.Run(effect.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := fake.New(fake.Plan{}, item{Key: "a"}, item{Key: "b"}, item{Key: "c"})
				f := follow(t, b, nil)
				after(time.Minute)
				b.Cut()
				b.SetPlan(plan(fake.Fault{Do: effect, Call: 1, Unseen: true}))
				after(10 * time.Second)
				f.says()
				must(b.Delete(t.Context(), "c", object.Any))
				put(t, b, "b", 7)
				after(10 * time.Second)
				require.Equal(t, []string{"updated b"}, f.says(), "c is a phantom")
				require.Zero(t, f.Status().Source.Gaps)
				require.Equal(t, effect == fake.Reorder, f.Status().Source.Replays == 1, "what came late is counted")
				f.Relist("test")
				after(10 * time.Second)
				require.Equal(t, []string{"deleted c?"}, f.says())
				f.equals(t, b)
				f.Relist("test")
				after(10 * time.Second)
				require.Empty(t, f.says())
			})
		})
	}
}

// A list that ends too early deletes what it does not name: no consumer can tell.
// The next one brings it back.
func TestAPartialPageIsBelieved(t *testing.T) {
	for _, streamed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := fake.New(fake.Plan{}, item{Key: "a"}, item{Key: "b"})
			if !streamed {
				listed(b)
			}
			f := follow(t, b, nil)
			after(time.Minute)
			f.says()
			b.SetPlan(plan(fake.Fault{Do: fake.PartialPage, Call: 1}))
			f.Relist("test")
			after(10 * time.Second)
			require.Equal(t, []string{"deleted b?"}, f.says())
			f.Relist("test")
			after(10 * time.Second)
			require.Equal(t, []string{"added b"}, f.says())
			f.equals(t, b)
		})
	}
}

// R15: what is told twice reaches the handler once.
func TestR15_DuplicatesAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := fake.New[pod](plan(fake.Fault{Do: fake.Duplicate}))
		f := follow(t, b, nil)
		after(time.Minute)
		put(t, b, "a", 1)
		put(t, b, "a", 2)
		must(b.Delete(t.Context(), "a", object.Any))
		synctest.Wait()
		require.Equal(t, []string{"added a", "updated a", "deleted a"}, f.says())
		require.EqualValues(t, 3, f.Status().Source.Replays)
	})
}

// R16: an error in the stream names no place, and moves none.
func TestR16_AnErrorDoesNotMoveTheCursor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := listed(fake.New[pod](fake.Plan{}))
		f := follow(t, b, nil)
		after(time.Minute)
		for i := range 20 {
			put(t, b, "a", i)
		}
		synctest.Wait()
		b.SetPlan(plan(fake.Fault{Do: fake.Cut, OneIn: 2, Err: fake.ErrFault}))
		put(t, b, "b", 0) // some of these end the session after they were told
		for i := range 10 {
			put(t, b, "b", i)
			after(3 * time.Second)
		}
		b.SetPlan(fake.Plan{})
		after(time.Minute)
		told, resumed := int64(20), 0
		for _, c := range b.Log() {
			switch {
			case c.Op == fake.List, c.Fault == fake.Cut: // it lists when it has broken three times before anything moved
				told = c.Revision
			case c.Op == fake.Watch && c.N > 1:
				require.Equal(t, told, c.Revision, c.String())
				resumed++
			}
		}
		require.Greater(t, resumed, 10)
		f.equals(t, b)
	})
}

// R17: a watch begins at the cursor of the list, whatever versions the objects have.
func TestR17_AWatchBeginsAtTheListsCursor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := listed(fake.New(fake.Plan{}, item{Key: "a"}))
		for range 20 {
			put(t, b, "gone", 1)
			must(b.Delete(t.Context(), "gone", object.Any))
		}
		f := follow(t, b, nil)
		after(time.Minute)
		require.Equal(t, []string{"list #1 at 41", "watch #1 at 41"}, calledSince(b, 0))
		require.Equal(t, []string{"added a"}, f.says(), "of version 1")
	})
}

// R30: there is a place to resume from before anything was told, also in an empty
// store.
func TestR30_AWatchOfNothingIsResumed(t *testing.T) {
	for _, streamed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := fake.New[pod](fake.Plan{})
			if !streamed {
				listed(b)
			}
			f := follow(t, b, nil)
			after(time.Minute)
			p := b.PauseBefore(fake.Watch)
			b.Cut()
			require.NoError(t, p.Wait(t.Context(), 1))
			put(t, b, "a", 1)
			p.Release()
			after(time.Minute)
			require.Len(t, f.changes, 1)
			require.Equal(t, object.Watched, f.changes[0].Cause)
			lists := uint64(0)
			if !streamed {
				lists = 1
			}
			s := f.Status().Source
			require.Equal(t, [2]uint64{lists, 2}, [2]uint64{s.Lists, s.Watches}, "resumed, not listed")
		})
	}
}

// behind is a name behind which there is one store, and later another.
type behind struct {
	now atomic.Pointer[fake.Backend[pod]]
}

func (b *behind) Powers() reflector.Powers[pod] { return b.now.Load().Powers() }
func (b *behind) List(ctx context.Context, o reflector.ListOptions) (reflector.Page[pod], error) {
	return b.now.Load().List(ctx, o)
}

func (b *behind) Watch(ctx context.Context, o reflector.WatchOptions) iter.Seq2[reflector.Batch[pod], error] {
	return b.now.Load().Watch(ctx, o)
}

// R31: a place in one store is none in another, though its revisions are higher.
func TestR31_AnotherStoreIsListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, other := fake.New(fake.Plan{}, item{Key: "a"}, item{Key: "b"}), fake.New[pod](fake.Plan{})
		for i := range 50 {
			put(t, other, "b", i)
			put(t, other, "c", i)
		}
		src := &behind{}
		src.now.Store(listed(one))
		f := follow(t, src, nil)
		after(time.Minute)
		f.says()
		src.now.Store(listed(other))
		one.Cut()
		after(time.Minute)
		require.Equal(t, []string{"watch #1 at 2", "list #1 at 100", "watch #2 at 100"}, withoutErrors(calledSince(other, 0)))
		f.equals(t, other)
		require.EqualValues(t, 1, f.Status().Source.Resets)
	})
}

// withoutErrors leaves out what a watch ends with: it is a second line for it.
func withoutErrors(lines []string) (all []string) {
	for i, l := range lines {
		if i == 0 || l != lines[i-1] {
			all = append(all, l)
		}
	}
	return all
}

// 200 informers list, and while all are held before they watch, so much is written
// that a short history does, or just does not, forget it: each ends equal.
func TestF01_TwoHundredBetweenListAndWatch(t *testing.T) {
	for _, writes := range []int{5, 8, 9, 30} {
		t.Run(fmt.Sprint(writes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := listed(fake.Over(fake.Plan{}, memory.New[pod](&memory.Options{History: 8})))
				require.NoError(t, b.Seed(item{Key: "gone"}, item{Key: "old"}))
				p := b.PauseAfter(fake.List)
				var all []*follower
				for i := range 200 {
					all = append(all, follow(t, b.As(fmt.Sprint("w", i)), nil))
				}
				require.NoError(t, p.Wait(t.Context(), 200))
				must(b.Delete(t.Context(), "gone", object.Any))
				put(t, b, "new", 1)
				for i := range writes - 2 {
					put(t, b, "old", i+1)
				}
				p.Release()
				after(time.Minute)
				for i, f := range all {
					f.equals(t, b)
					want := 1
					if writes > 8 {
						want = 2
					}
					require.Equal(t, want, b.As(fmt.Sprint("w", i)).Calls(fake.List))
				}
			})
		})
	}
}
