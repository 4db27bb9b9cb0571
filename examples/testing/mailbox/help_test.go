package mailbox_test

import (
	"maps"
	"testing"

	"github.com/homeostat/homeostat/examples/testing/mailbox"
	"github.com/homeostat/homeostat/fake"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reconcile"
	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/retry"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is two stores and the controller between them. To be made in a bubble.
type world struct {
	users      *fake.Backend[mailbox.User]
	boxes      *fake.Backend[mailbox.Mailbox]
	controller *reconcile.Controller[mailbox.User]
}

func newWorld(t *testing.T) *world {
	w := &world{
		users: fake.New[mailbox.User](fake.Plan{}),
		boxes: fake.New[mailbox.Mailbox](fake.Plan{}),
	}
	// One worker, and backoffs without chance: with them a seed gives the same run
	// each time, or nearly.
	backoff := retry.Backoff{NoJitter: true}
	w.controller = mailbox.New(
		informer.New(w.users.As("controller"), &informer.Options{Backoff: backoff}),
		reconcile.NewClient(w.boxes.As("controller"), &informer.Options{Backoff: backoff}),
		&reconcile.Options{Workers: 1, Backoff: backoff},
	)
	t.Cleanup(func() {
		if t.Failed() {
			w.tell(t)
		}
	})
	return w
}

// run runs the controller until the test ends.
func (w *world) run(t *testing.T) {
	go func() {
		if err := reconcile.Run(t.Context(), w.controller); err != nil {
			t.Error(err)
		}
	}()
}

// listed takes away what would stream the first list.
func listed[T any](p reflector.Powers[T]) reflector.Powers[T] {
	p.Initial = false
	return p
}

// calm ends all faults.
func (w *world) calm() {
	w.users.SetPlan(fake.Plan{})
	w.boxes.SetPlan(fake.Plan{})
}

// tell prints what happened, for a test that failed.
func (w *world) tell(t *testing.T) {
	for _, call := range w.users.Log() {
		t.Log("users:", call)
	}
	for _, call := range w.boxes.Log() {
		t.Log("boxes:", call)
	}
	for _, key := range []string{"ann", "bob", "cyd"} {
		t.Log(w.controller.Explain(key))
	}
}

// quotas is what a store holds, read past every fault.
func (w *world) quotas() (declared, there map[string]int) {
	return held(w.users.Snapshot().List, func(u mailbox.User) int { return u.Quota }),
		held(w.boxes.Snapshot().List, func(m mailbox.Mailbox) int { return m.Quota })
}

func held[T any](list func(reflector.ListOptions) reflector.Page[T], quota func(T) int) map[string]int {
	all := map[string]int{}
	for _, item := range list(reflector.ListOptions{}).Items {
		all[item.Key] = quota(item.Object)
	}
	return all
}

// converged says that each user has a mailbox of the right size, and nobody else.
func (w *world) converged(t *testing.T) {
	t.Helper()
	if declared, there := w.quotas(); !maps.Equal(declared, there) {
		t.Errorf("declared %v, there is %v", declared, there)
	}
}

// declare writes a user as an administrator would, whose calls are none of the
// controller's.
func (w *world) declare(t *testing.T, name string, quota int) {
	t.Helper()
	ctx := t.Context()
	_, err := w.users.Create(ctx, name, mailbox.User{Quota: quota})
	if err != nil {
		_, err = w.users.Update(ctx, object.Item[mailbox.User]{Key: name, Version: object.Any, Object: mailbox.User{Quota: quota}})
	}
	if err != nil {
		t.Error(err)
	}
}

// dismiss takes a user away.
func (w *world) dismiss(t *testing.T, name string) {
	t.Helper()
	if _, err := w.users.Delete(t.Context(), name, object.Any); err != nil {
		t.Error(err)
	}
}
