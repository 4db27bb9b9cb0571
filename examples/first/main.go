// Command first is a first controller: any function that lists is a backend.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/reconcile"
	"github.com/homeostat/homeostat/reflector"
)

type User struct{ Name string }

func (u User) Key() string { return u.Name }

// listUsers could as well ask a database or an API.
func listUsers(ctx context.Context) ([]User, error) { return []User{{"ann"}, {"bob"}}, nil }

// home keeps a folder for each user, and none for those who are gone.
func home(ctx context.Context, req reconcile.Request[User]) error {
	dir := filepath.Join("homes", req.Key)
	if _, exists := req.Object(); !exists {
		return os.RemoveAll(dir)
	}
	return os.MkdirAll(dir, 0o755)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	users := informer.New(reflector.Poll(listUsers, User.Key, nil), nil)
	if err := reconcile.Run(ctx, reconcile.New("homes", users, home, nil)); err != nil {
		log.Fatal(err)
	}
}
