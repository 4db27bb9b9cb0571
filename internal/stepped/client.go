package stepped

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/retry"
)

// client is an informer behind a gate, and all that is known of it.
type client struct {
	w    *world
	id   int
	kind kind

	src, hnt line // where the source's calls and the hints stand

	inf    *informer.Informer[Thing]
	ctx    context.Context // of its Run
	cancel context.CancelFunc
	ended  atomic.Bool
	ear    *ear

	// What follows is written by the client's goroutines while the scheduler
	// waits, or by the scheduler while they stand.

	seen   sight              // the cache's
	point  *point             // where the open watch stands, nil before its first batch
	after  reflector.Cursor   // where it was to begin
	hangUp context.CancelFunc // ends it, while nothing is on its way

	began   int    // the step in which the last full state began to be read
	reading *point // what its pages show
	last    string // the last key of its last page
	life    int    // the model's, when it began
	listing struct {
		began     int
		first, to reflector.Cursor
		whole     bool // all pages have come
	}
	committed int // the step in which the last full state that the cache has was begun
	// at is, for a source without positions, where the cache can be; mixed: it has
	// objects that were fetched one by one.
	at    []reflector.Cursor
	mixed bool
	given reflector.Cursor // the last list that was answered whole

	lied   int // the step of the last fault that the source hides
	lost   int // of the last that only a full state is sure to repair
	astray int // of the last restore that this client may mistake for what it knew
	liedOf [maxKeys]bool
	// For what a clean source must never cause.
	gaps, replays, resets bool
	olds                  int // lists that were old ones
	waits                 []*wait
	oldSince              time.Time                // since when all its lists were old ones
	sent                  []reflector.Batch[Thing] // the last batches of this watch
}

// options are short, and without jitter: the same steps take the same time.
func options(k kind) *informer.Options {
	o := &informer.Options{
		Backoff:    retry.Backoff{Max: 2 * time.Second, NoJitter: true},
		PageSize:   3,
		Open:       8 * time.Second,
		Session:    -1,
		ResetAfter: resetAfter,
		Audit:      -1,
	}
	if k.has("audit") {
		// So short that it begins before the next step, whatever its jitter.
		o.Audit = 100 * time.Millisecond
	}
	return o
}

const (
	resetAfter = 10 * time.Second
	pollEvery  = 500 * time.Millisecond
)

// start makes a client of this kind and lets it run.
func (w *world) start(id int, k kind) *client {
	c := &client{w: w, id: id, kind: k, committed: -1, lied: -1, lost: -1, astray: -1}
	src := reflector.ListWatcher[Thing](gate{c})
	switch k.feed {
	case "poll":
		src = reflector.PollItems(func(ctx context.Context) ([]item, error) {
			page, err := gate{c}.List(ctx, reflector.ListOptions{IfModified: reflector.IfModified(ctx)})
			return page.Items, err
		}, &reflector.PollOptions{Every: pollEvery})
	case "hint":
		src = reflector.Hint(src, gate{c}.hints)
	}
	if k.has("filter") {
		c.seen.hidden = true
		src = reflector.Filter(src, func(t Thing) bool { return !isHidden(t.N) })
	}
	if w.cfg.Source != nil {
		src = w.cfg.Source(src)
	}
	c.inf = informer.New(src, options(k))
	c.listen()
	c.ctx, c.cancel = context.WithCancel(w.ctx)
	go func() {
		defer c.ended.Store(true)
		if err := c.inf.Run(c.ctx); err != nil {
			c.w.fault("c%d: Run: %v", id, err)
		}
	}()
	return c
}

// stop ends the client; it must then be gone.
func (c *client) stop() {
	c.cancel()
	c.ear.quit()
}

// listed is called when a page is about to reach the reflector.
func (c *client) listed(opts reflector.ListOptions, page reflector.Page[Thing]) {
	l := &c.listing
	if opts.Page == "" {
		l.began, l.first = c.began, page.Cursor
	}
	// Keys are only compared.
	l.to, l.whole = page.Cursor, page.Next == "" && !opts.KeysOnly
	c.given = ""
	if !l.whole {
		return
	}
	if c.lied < c.began {
		c.given = page.Cursor
	}
	if !c.kind.positions() {
		c.at, c.mixed, c.committed = []reflector.Cursor{page.Cursor}, false, l.began
	}
}

// deliver is called before a batch is yielded, delivered after it.
func (c *client) deliver(b reflector.Batch[Thing], at reflector.Cursor) {
	if at == "" {
		return
	}
	c.at = append(c.at, at)
	if len(b.Events) > 0 && !b.Synced {
		c.sent = append(c.sent, b)
	}
}

func (c *client) delivered(b reflector.Batch[Thing], at reflector.Cursor, ok bool) {
	if at == "" || !ok {
		return
	}
	l := &c.listing
	switch {
	case b.Synced:
		c.committed, l.whole = c.began, false
	case !l.whole || l.first == l.to:
	case b.Cursor == "" || c.w.compare(at, l.to) < 0: // the list is still held back
		return
	default:
		c.committed, l.whole = l.began, false
	}
	c.at = []reflector.Cursor{at}
}

// ear is a handler and all that it was told.
type ear struct {
	c    *client
	sub  *informer.Subscription
	once sync.Once
	done chan struct{} // it is not heard any more

	mu     sync.Mutex
	news   []informer.Change[Thing] // not looked at yet
	resume chan struct{}            // set while the handler stands

	told state
	seen sight
}

// listen gives the client a new handler.
func (c *client) listen() {
	e := &ear{c: c, done: make(chan struct{}), seen: sight{hidden: c.kind.has("filter")}}
	hear := e.hear
	if c.w.cfg.Handler != nil {
		hear = c.w.cfg.Handler(hear)
	}
	c.ear = e
	e.sub = c.inf.AddHandler(hear, &informer.HandlerOptions{Inline: c.kind.has("inline")})
}

// hear is the handler.
func (e *ear) hear(ch informer.Change[Thing]) {
	var resume chan struct{}
	e.mu.Lock()
	e.news = append(e.news, ch)
	if e.c.kind.has("slow") {
		resume = make(chan struct{})
		e.resume = resume
	}
	e.mu.Unlock()
	if resume == nil {
		return
	}
	select {
	case <-resume:
	case <-e.done:
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.resume = nil
}

// work lets the handler finish the change that it stands at; false when there is
// none.
func (e *ear) work() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.resume == nil {
		return false
	}
	close(e.resume)
	return true
}

// quit ends the handler.
func (e *ear) quit() {
	e.sub.Cancel()
	e.once.Do(func() { close(e.done) })
}

func (e *ear) take() []informer.Change[Thing] {
	e.mu.Lock()
	defer e.mu.Unlock()
	news := e.news
	e.news = nil
	return news
}

// behind: there is something that the handler has not been told.
func (e *ear) behind() bool {
	keys, _ := e.sub.Lag()
	e.mu.Lock()
	defer e.mu.Unlock()
	return keys > 0 || e.resume != nil
}
