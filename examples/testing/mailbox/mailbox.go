// Package mailbox is a small controller, and above all its tests: docs/testing.md
// walks through them.
package mailbox

import (
	"context"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/reconcile"
)

// User is what is declared, under the user's name.
type User struct{ Quota int }

// Mailbox is what there is, under the same name.
type Mailbox struct {
	Quota int
	Note  string `json:",omitempty"` // whatever others write
}

// New makes the controller that keeps one mailbox for each user.
func New(users *informer.Informer[User], boxes reconcile.Client[Mailbox], opts *reconcile.Options) *reconcile.Controller[User] {
	c := reconcile.New("mailboxes", users, keeper{boxes}.keep, opts)
	reconcile.WatchFunc(c, boxes.Informer, func(_ context.Context, ch informer.Change[Mailbox]) ([]string, error) {
		return []string{ch.Key}, nil
	})
	return c
}

type keeper struct{ boxes reconcile.Client[Mailbox] }

// keep looks at both sides and does what is missing.
func (k keeper) keep(ctx context.Context, req reconcile.Request[User]) error {
	user, wanted := req.Object()
	box, exists := k.boxes.Cache().Item(req.Key)
	var err error
	switch {
	case wanted && !exists:
		_, err = k.boxes.Create(ctx, req.Key, Mailbox{Quota: user.Quota})
	case wanted && box.Object.Quota != user.Quota:
		_, err = backend.Modify(ctx, k.boxes, req.Key, func(m Mailbox) (Mailbox, error) {
			m.Quota = user.Quota
			return m, nil
		})
	case !wanted && exists:
		_, err = k.boxes.Delete(ctx, req.Key, box.Version)
	}
	return err
}
