package main

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/homeostat/homeostat/indexer"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/reflector"
)

// Guest is a row of a table that somebody else keeps.
type Guest struct{ Name, Seat string }

func (g Guest) Key() string { return g.Name }

// table stands for yours: it lists, and says which rows have changed to whoever
// listens at that moment.
type table struct {
	mu     sync.Mutex
	rows   map[string]Guest
	listen map[chan string]bool
}

func (t *table) list(context.Context) ([]Guest, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(t.rows)), nil
}

func (t *table) seat(g Guest) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows[g.Name] = g
	for news := range t.listen {
		select {
		case news <- g.Name:
		default: // it does not listen closely; that is its own loss
		}
	}
}

func (t *table) subscribe() (news chan string, end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	news = make(chan string, 100)
	t.listen[news] = true
	return news, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.listen, news)
	}
}

func newTable() *table {
	return &table{rows: map[string]Guest{"ann": {"ann", "window"}}, listen: map[chan string]bool{}}
}

// A function that lists is a source.
func Example_poll() {
	rows := newTable()
	guests := informer.New(reflector.Poll(rows.list, Guest.Key, &reflector.PollOptions{Every: 10 * time.Millisecond}), nil)
	follow(rows, guests)
	// Output:
	// {ann window}
	// {ann door}
}

// Something that says when to look makes it fast.
func Example_hint() {
	rows := newTable()
	hints := func(ctx context.Context) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) {
			news, end := rows.subscribe()
			defer end()
			if !yield("", nil) { // the subscription is live: now list
				return
			}
			for {
				select {
				case key := <-news:
					if !yield(key, nil) {
						return
					}
				case <-ctx.Done():
					return
				}
			}
		}
	}
	guests := informer.New(reflector.Hint(reflector.Poll(rows.list, Guest.Key, nil), hints), nil)
	follow(rows, guests)
	// Output:
	// {ann window}
	// {ann door}
}

// follow runs an informer until it has seen ann at the door.
func follow(rows *table, guests *informer.Informer[Guest]) {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	ended := make(chan error, 1)
	go func() { ended <- guests.Run(ctx) }()
	for _, seat := range []string{"window", "door"} {
		rows.seat(Guest{"ann", seat})
		guests.Until(ctx, func(s *indexer.Snapshot[Guest]) bool {
			ann, _ := s.Get("ann")
			return ann.Seat == seat
		})
		ann, _ := guests.Cache().Get("ann")
		fmt.Println(ann)
	}
	stop()
	<-ended
}
