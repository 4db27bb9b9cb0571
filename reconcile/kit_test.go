package reconcile_test

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/backend/memory"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reconcile"
	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/retry"
)

// thing is an object of any kind in these tests.
type thing struct {
	object.Meta `json:"meta,omitzero"`
	Owner       string `json:"owner,omitempty"`
	Spec        int    `json:"spec,omitempty"`
	Status      string `json:"status,omitempty"`
	Other       string `json:"other,omitempty"`
}

func owners(c thing) []string {
	if c.Owner == "" {
		return nil
	}
	return []string{c.Owner}
}

// ran are the calls of a Func, as a test saw them.
type ran struct {
	mu    sync.Mutex
	calls []call
	now   map[string]int
	twice bool // one key was at work twice at once
}

type call struct {
	reconcile.Request[thing]
	at time.Time
}

// wrap counts the calls of f; nil does nothing.
func (r *ran) wrap(f reconcile.Func[thing]) reconcile.Func[thing] {
	return func(ctx context.Context, req reconcile.Request[thing]) error {
		r.mu.Lock()
		if r.now == nil {
			r.now = map[string]int{}
		}
		r.calls = append(r.calls, call{req, time.Now()})
		r.now[req.Key]++
		r.twice = r.twice || r.now[req.Key] > 1
		r.mu.Unlock()
		defer func() {
			r.mu.Lock()
			r.now[req.Key]--
			r.mu.Unlock()
		}()
		if f == nil {
			return nil
		}
		return f(ctx, req)
	}
}

// of are the calls for a key ("" is all).
func (r *ran) of(key string) []call {
	r.mu.Lock()
	defer r.mu.Unlock()
	var calls []call
	for _, c := range r.calls {
		if key == "" || c.Key == key {
			calls = append(calls, c)
		}
	}
	return calls
}

func (r *ran) keys() []string {
	var keys []string
	for _, c := range r.of("") {
		keys = append(keys, c.Key)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

func (r *ran) overlapped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.twice
}

// launch runs all until the test stops them, within a bubble.
func launch(t *testing.T, g *reconcile.Group, all ...reconcile.Runner) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx, all...) }()
	var once sync.Once
	var err error
	stop = func() error {
		once.Do(func() {
			cancel()
			err = <-ended
		})
		return err
	}
	t.Cleanup(func() { stop() })
	synctest.Wait()
	return stop
}

// with fills a store.
func with(t *testing.T, b backend.Backend[thing], keys ...string) {
	t.Helper()
	for _, key := range keys {
		_, err := b.Create(context.Background(), key, thing{})
		require.NoError(t, err)
	}
}

func store(t *testing.T, keys ...string) *memory.Store[thing] {
	t.Helper()
	s := memory.New[thing](nil)
	with(t, s, keys...)
	return s
}

// put sets Spec, whatever is there.
func put(t *testing.T, b backend.Backend[thing], key string, spec int) {
	t.Helper()
	_, err := b.Update(context.Background(), object.Item[thing]{Key: key, Version: object.Any, Object: thing{Spec: spec}})
	require.NoError(t, err)
}

func remove(t *testing.T, b backend.Backend[thing], key string) {
	t.Helper()
	_, err := b.Delete(context.Background(), key, object.Any)
	require.NoError(t, err)
}

func named(name string) *informer.Options { return &informer.Options{Name: name} }

// exact is a backoff without jitter: 1 s, 2 s, 4 s …
var exact = retry.Backoff{Base: time.Second, Max: time.Hour, NoJitter: true}

// reasons are the causes of a call, in short.
func reasons(c call) []string {
	var all []string
	for _, t := range c.Causes {
		all = append(all, fmt.Sprintf("%s %s ×%d", t.Source, t.Reason, t.Count))
	}
	return all
}

// lagging is a backend whose watch tells everything so much later. opaque takes
// away whatever relates versions to positions.
type lagging struct {
	backend.Backend[thing]
	lag    time.Duration
	opaque bool
}

func (l lagging) Powers() reflector.Powers[thing] {
	p := l.Backend.Powers()
	if l.opaque {
		p.Compare, p.Reached, p.Head = nil, nil, nil
	}
	return p
}

func (l lagging) Watch(ctx context.Context, opts reflector.WatchOptions) iter.Seq2[reflector.Batch[thing], error] {
	type stamped struct {
		batch reflector.Batch[thing]
		err   error
		at    time.Time
	}
	return func(yield func(reflector.Batch[thing], error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var all sync.WaitGroup
		defer all.Wait()
		defer cancel()
		pipe := make(chan stamped, 10_000)
		all.Go(func() {
			defer close(pipe)
			for batch, err := range l.Backend.Watch(ctx, opts) {
				batch.Events = slices.Clone(batch.Events)
				select {
				case pipe <- stamped{batch, err, time.Now()}:
				case <-ctx.Done():
					return
				}
			}
		})
		for s := range pipe {
			// A full state isn't late: it is what a list would answer now.
			if !s.batch.Reset && s.err == nil && len(s.batch.Events) > 0 {
				select {
				case <-time.After(time.Until(s.at.Add(l.lag))):
				case <-ctx.Done():
					return
				}
			}
			if !yield(s.batch, s.err) {
				return
			}
		}
	}
}

// lines is a logger that keeps what it is told.
type lines struct {
	mu  sync.Mutex
	buf strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *lines) logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: level}))
}

func goexit() { runtime.Goexit() }

// byKey is a Func that answers each key with the same.
func byKey(answers map[string]error) reconcile.Func[thing] {
	return func(_ context.Context, req reconcile.Request[thing]) error { return answers[req.Key] }
}
