package fake_test

import (
	"fmt"
	"math/rand/v2"
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

// storm is a plan of every effect, by chance. unseen says that some of them leave
// what only a full state repairs.
func storm(r *rand.Rand, seed uint64) (p fake.Plan, unseen bool) {
	p.Seed = seed
	for _, f := range []fake.Fault{
		{On: fake.List | fake.Watch | fake.Writes, Do: fake.Fail, OneIn: 3 + r.IntN(20)},
		{Do: fake.FailAfterCommit, OneIn: 3 + r.IntN(20)},
		{On: fake.List | fake.Watch, Do: fake.Delay, OneIn: 3 + r.IntN(20), For: time.Duration(1+r.IntN(5000)) * time.Millisecond},
		{Do: fake.Expire, OneIn: 3 + r.IntN(20)},
		{Do: fake.Silence, OneIn: 3 + r.IntN(20), For: time.Duration(1+r.IntN(60)) * time.Second},
		{Do: fake.Cut, OneIn: 3 + r.IntN(20)},
		{Do: fake.Cut, OneIn: 10 + r.IntN(20), Err: reflector.ErrExpired},
		{Do: fake.Duplicate, OneIn: 3 + r.IntN(20)},
		{Do: fake.Conflict, OneIn: 3 + r.IntN(20)},
		{Do: fake.Reorder, OneIn: 3 + r.IntN(20)},
		{Do: fake.Drop, OneIn: 3 + r.IntN(20)},
		{Do: fake.StaleRead, OneIn: 3 + r.IntN(20), Back: r.IntN(20)},
		{On: fake.Get | fake.Watch, Do: fake.Restore, OneIn: 20 + r.IntN(60), Back: r.IntN(20), NewEpoch: true},
		{Do: fake.Reorder, OneIn: 3 + r.IntN(20), Unseen: true},
		{Do: fake.Drop, OneIn: 3 + r.IntN(20), Unseen: true},
		{Do: fake.PartialPage, OneIn: 3 + r.IntN(20)},
	} {
		if r.IntN(2) == 0 {
			p.Faults = append(p.Faults, f)
			unseen = unseen || f.Unseen || f.Do == fake.PartialPage
		}
	}
	return p, unseen
}

// Under every plan an informer ends equal to the store once the sun comes out: by
// itself, or, where the source lied and did not know it, with the next full state.
func TestG1_InformersConvergeUnderEveryPlan(t *testing.T) {
	for seed := range uint64(150) {
		synctest.Test(t, func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("seed %d", seed)
				}
			}()
			r := rand.New(rand.NewPCG(seed, 8))
			p, unseen := storm(r, seed)
			b := fake.Over(p, memory.New[pod](&memory.Options{History: 5 + r.IntN(100)}))
			if r.IntN(2) == 0 {
				listed(b)
			}
			var all []*follower
			for i := range 3 {
				all = append(all, follow(t, b.As(fmt.Sprint("w", i)), &informer.Options{PageSize: 1 + r.IntN(5), ResetAfter: 10 * time.Second}))
			}
			write(t.Context(), b.As("writer"), seed, 80, func() {})
			b.SetPlan(fake.Plan{})
			put(t, b, "last", 1) // what was dropped last shows
			after(2 * time.Minute)
			for _, f := range all {
				if unseen {
					f.Relist("test")
					after(time.Minute)
				}
				f.equals(t, b)
			}
		})
	}
}

// Without a new epoch, and once the revisions were given again, nobody can tell: a
// full state does not help either. The next write does.
func TestARestoreThatNobodyCanSee(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := fake.New(fake.Plan{}, item{Key: "a"})
		f := follow(t, b, nil)
		after(time.Minute)
		old := b.Snapshot()
		put(t, b, "a", 1)
		after(time.Minute)
		b.Restore(old, false)
		lied := put(t, b, "a", 2)
		f.Relist("test")
		after(10 * time.Minute)
		got, _ := f.Cache().Item("a")
		require.Equal(t, item{Key: "a", Version: lied.Version, ID: lied.ID, Object: pod{N: 1}}, got)
		require.Zero(t, f.Status().Source.Resets)

		must(b.Update(t.Context(), item{Key: "a", Version: object.Any, Object: pod{N: 3}}))
		after(time.Minute)
		f.equals(t, b)
	})
}
