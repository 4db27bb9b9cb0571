// Command first is a first controller: any function that lists is a source.
package main

import (
	"context"
	"log"
	"log/slog"
	"os"
	"os/signal"

	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/reconcile"
	"github.com/homeostat/homeostat/reflector"
)

type User struct{ Name string }

func (u User) Key() string { return u.Name }

// listUsers could as well ask a database or an API.
func listUsers(ctx context.Context) ([]User, error) { return []User{{"ann"}, {"bob"}}, nil }

// home makes the folder of a user, or takes it away when the user is gone.
func home(ctx context.Context, req reconcile.Request[User]) error {
	homes, err := os.OpenRoot("homes") // whatever a name says, nothing outside is touched
	if err != nil {
		return err
	}
	defer homes.Close()
	if _, exists := req.Object(); !exists {
		return homes.RemoveAll(req.Key)
	}
	return homes.MkdirAll(req.Key, 0o755)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.MkdirAll("homes", 0o755)
	users := informer.New(reflector.Poll(listUsers, User.Key, nil), &informer.Options{Logger: slog.Default()})
	homes := reconcile.New("homes", users, home, &reconcile.Options{Logger: slog.Default()})
	if err := reconcile.Run(ctx, homes); err != nil {
		log.Fatal(err)
	}
}
