package stepped

import (
	"context"
	"sync"

	"github.com/homeostat/homeostat/reflector"
)

// what a call waits for.
type what uint8

const (
	askList  what = iota // a list, or its next page, is asked for
	gotPage              // its answer is on the way
	askWatch             // a watch is being opened
	gotBatch             // a batch, or the watch's error, is on the way
	askGet
	gotItem
	askHints
	gotHint
)

var whats = [...]string{"list?", "page", "watch?", "batch", "get?", "item", "hints?", "hint"}

func (w what) String() string { return whats[w] }

// call is one that stands at the gate until the scheduler lets it go on. While it
// stands, and only then, the scheduler reads it.
type call struct {
	what  what
	list  reflector.ListOptions
	watch reflector.WatchOptions
	page  reflector.Page[Thing]  // as the store gave it
	batch reflector.Batch[Thing] // a piece of what the store gave
	key   string
	item  item
	err   error

	fresh  bool // was not looked at; answers only of the store itself
	whole  reflector.Batch[Thing]
	resume chan verdict
}

// verdict is how a call goes on.
type verdict struct {
	do   string // the step's op; "go" is as it is
	err  error  // what is answered instead
	page *reflector.Page[Thing]
	old  *reflector.Batch[Thing]
	gone bool // the caller has left
}

// line is where the calls of one goroutine stand, one at a time.
type line struct {
	mu   sync.Mutex
	call *call
}

// stand waits for the scheduler, or the end of ctx.
func (l *line) stand(ctx context.Context, c *call) verdict {
	c.resume = make(chan verdict, 1)
	l.put(c)
	defer l.put(nil)
	select {
	case v := <-c.resume:
		return v
	case <-ctx.Done():
		return verdict{err: ctx.Err(), gone: true}
	}
}

func (l *line) put(c *call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.call = c
}

// standing is the call that waits, nil when none does.
func (l *line) standing() *call {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.call
}

// pass lets the call that waits go on.
func (l *line) pass(v verdict) { l.standing().resume <- v }
