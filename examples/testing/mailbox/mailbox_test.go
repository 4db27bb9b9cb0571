package mailbox_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/examples/testing/mailbox"
	"github.com/homeostat/homeostat/fake"
)

func TestCalm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.declare(t, "ann", 1)
		w.run(t)
		synctest.Wait() // until everybody waits for something to happen
		w.converged(t)

		w.declare(t, "bob", 2)
		w.declare(t, "ann", 3)
		synctest.Wait()
		w.converged(t)

		w.dismiss(t, "ann")
		synctest.Wait()
		w.converged(t)
	})
}

// badDay is all that a store may do to its callers.
func badDay(seed uint64) fake.Plan {
	return fake.Plan{Seed: seed, Faults: []fake.Fault{
		{On: fake.List | fake.Watch, Do: fake.Fail, OneIn: 5},
		{On: fake.Watch, Do: fake.Cut, OneIn: 5},
		{On: fake.Watch, Do: fake.Silence, OneIn: 20, For: time.Hour},
		{On: fake.Watch, Do: fake.Delay, OneIn: 5, For: 2 * time.Second},
		{On: fake.Watch, Do: fake.Duplicate, OneIn: 10},
		{On: fake.Watch, Do: fake.Drop, OneIn: 10},
		{On: fake.List, Do: fake.StaleRead, OneIn: 10, Back: 3},
		{On: fake.List | fake.Watch, Do: fake.Expire, OneIn: 20},
	}}
}

// badWrites is what a store may do to those who write besides.
func badWrites(seed uint64) fake.Plan {
	p := badDay(seed)
	p.Faults = append(p.Faults,
		fake.Fault{On: fake.Get | fake.Writes, Do: fake.Fail, OneIn: 5},
		fake.Fault{On: fake.Writes, Do: fake.FailAfterCommit, OneIn: 5},
		fake.Fault{On: fake.Writes, Do: fake.Conflict, OneIn: 5},
	)
	return p
}

func TestBadDay(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.users.SetPlan(badDay(seed))
				w.boxes.SetPlan(badWrites(seed))
				w.run(t)
				anyDay(t, w, seed)

				w.calm()
				time.Sleep(2 * time.Hour) // longer than any backoff; it takes no time
				synctest.Wait()
				w.converged(t)
			})
		})
	}
}

// anyDay has users come, change and go.
func anyDay(t *testing.T, w *world, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 50 {
		name := []string{"ann", "bob", "cyd"}[rng.IntN(3)]
		if declared, _ := w.quotas(); declared[name] > 0 && rng.IntN(3) == 0 {
			w.dismiss(t, name)
		} else {
			w.declare(t, name, 1+rng.IntN(9))
		}
		time.Sleep(time.Duration(rng.IntN(10)) * time.Second)
	}
}

// A user who is declared after the list was read, and before anybody watches.
func TestBetweenListAndWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.declare(t, "ann", 1)
		w.users.OnPowers(listed) // or the first list would come by the watch
		pause := w.users.As("controller").PauseAfter(fake.List)
		w.run(t)
		if err := pause.Wait(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		w.declare(t, "bob", 2)
		w.dismiss(t, "ann")
		pause.Release()

		synctest.Wait()
		w.converged(t)
	})
}

// The answer to the controller's first Create is lost. The mailbox is there, and it
// stays the same one.
func TestLostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.boxes.SetPlan(fake.Plan{Faults: []fake.Fault{
			{On: fake.Create, Do: fake.FailAfterCommit, Call: 1},
		}})
		w.declare(t, "ann", 1)
		w.run(t)
		synctest.Wait()
		first, err := w.boxes.Get(t.Context(), "ann")
		if err != nil {
			t.Fatal(err)
		}

		w.declare(t, "ann", 2)
		time.Sleep(time.Minute)
		synctest.Wait()
		w.converged(t)
		if now, err := w.boxes.Get(t.Context(), "ann"); err != nil || now.ID != first.ID {
			t.Errorf("made %s, now there is %s, %v", first.ID, now.ID, err)
		}
	})
}

// Somebody else writes a note, exactly between the controller's read and its write.
func TestTwoWriters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.declare(t, "ann", 1)
		w.run(t)
		synctest.Wait()

		once := true
		w.boxes.As("controller").Intercept(fake.Patch|fake.Update, func(ctx context.Context, key string) error {
			if !once {
				return nil
			}
			once = false
			_, err := backend.Modify(ctx, w.boxes, key, func(m mailbox.Mailbox) (mailbox.Mailbox, error) {
				m.Note = "on holiday"
				return m, nil
			})
			return err
		})
		w.declare(t, "ann", 2)
		time.Sleep(time.Minute)
		synctest.Wait()
		w.converged(t)
		if box, err := w.boxes.Get(t.Context(), "ann"); err != nil || box.Object.Note != "on holiday" {
			t.Errorf("the note is lost: %+v, %v", box.Object, err)
		}
	})
}

// A replica that lags shows a user who is gone. Nobody gets a mailbox for that.
func TestStaleList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.users.OnPowers(listed)
		w.declare(t, "ann", 1)
		w.declare(t, "bob", 1)
		w.run(t)
		synctest.Wait()
		w.dismiss(t, "bob")
		synctest.Wait()

		w.users.SetPlan(fake.Plan{Faults: []fake.Fault{
			{On: fake.Watch, Do: fake.Expire, Call: 1},
			{On: fake.List, Do: fake.StaleRead, Back: 1}, // the state before the last write
		}})
		w.users.Cut() // the next watch is expired, so there is a list, and then another
		time.Sleep(30 * time.Second)
		synctest.Wait()
		w.converged(t)

		w.calm()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		w.converged(t)
	})
}

// A seed decides which call is struck, whatever goroutine comes first.
func TestSeedStrikesTheSameCalls(t *testing.T) {
	type call struct {
		op fake.Op
		n  int
	}
	var struck [2]map[call]fake.Effect
	for i := range struck {
		struck[i] = map[call]fake.Effect{}
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.boxes.SetPlan(badWrites(7))
			w.run(t)
			anyDay(t, w, 7)
			for _, c := range w.boxes.Log() {
				if c.Op != fake.Watch { // what strikes within a watch depends on its batches
					struck[i][call{c.Op, c.N}] = c.Fault
				}
			}
		})
	}
	for c, fault := range struck[0] {
		if other, made := struck[1][c]; made && other != fault {
			t.Errorf("%v #%d: %v, and another time %v", c.op, c.n, fault, other)
		}
	}
}
