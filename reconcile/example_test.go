package reconcile_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/fake"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reconcile"
	"github.com/homeostat/homeostat/reflector"
)

type User struct{ Name string }

func (u User) Key() string { return u.Name }

func listUsers(context.Context) ([]User, error) { return []User{{"ann"}, {"bob"}}, nil }

// homes keeps a directory for each user.
type homes struct{ root string }

func (h homes) reconcile(ctx context.Context, req reconcile.Request[User]) error {
	dir := filepath.Join(h.root, req.Key)
	if _, exists := req.Object(); !exists {
		return os.RemoveAll(dir)
	}
	return os.MkdirAll(dir, 0o755)
}

// A first controller, over a function that lists: whatever can be listed can be
// watched.
func Example() {
	root, err := os.MkdirTemp("", "homes")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(root)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	users := informer.New(reflector.Poll(listUsers, User.Key, nil), nil)
	made := make(chan string, 2)
	c := reconcile.New("homes", users, func(ctx context.Context, req reconcile.Request[User]) error {
		err := homes{root}.reconcile(ctx, req)
		made <- req.Key
		return err
	}, nil)
	go func() { // a program would wait for a signal
		<-made
		<-made
		stop()
	}()
	if err := reconcile.Run(ctx, c); err != nil {
		fmt.Println(err)
	}
	dirs, _ := filepath.Glob(filepath.Join(root, "*"))
	for _, dir := range dirs {
		fmt.Println(filepath.Base(dir))
	}
	// Output:
	// ann
	// bob
}

// The same controller on a bad day, in no time, and replayable by its seed: this
// is how to test one's own.
func TestExample_HomesSurviveABadDay(t *testing.T) {
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		users := fake.New(fake.Plan{Seed: 1, Faults: []fake.Fault{
			{On: fake.List, Do: fake.Fail, Call: 1},
			{On: fake.Watch, Do: fake.Cut, OneIn: 10},
			{On: fake.Watch, Do: fake.Silence, OneIn: 50, For: time.Hour},
		}}, object.Item[User]{Key: "ann", Object: User{"ann"}})
		c := reconcile.New("homes", informer.New(users, nil), homes{root}.reconcile, nil)
		go reconcile.Run(t.Context(), c)

		users.Create(t.Context(), "bob", User{"bob"})
		users.Delete(t.Context(), "ann", object.Any)
		users.SetPlan(fake.Plan{})
		time.Sleep(2 * time.Hour)
		synctest.Wait()

		if got, _ := filepath.Glob(root + "/*"); len(got) != 1 || filepath.Base(got[0]) != "bob" {
			t.Errorf("homes: %v\nbackend: %v\nann: %v", got, users.Log(), c.Explain("ann"))
		}
	})
}
