package file_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/homeostat/homeostat/backend/file"
	"github.com/homeostat/homeostat/reflector"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// app is the type that the tests declare.
type app struct {
	Name  string            `json:"name"`
	Size  int               `json:"size,omitempty"`
	Ratio float64           `json:"ratio,omitempty"`
	On    bool              `json:"on,omitempty"`
	Tags  []string          `json:"tags,omitempty"`
	Env   map[string]string `json:"env,omitempty"`
	Since time.Time         `json:"since,omitzero"`
	Big   jsonNumber        `json:"big,omitempty"`
	Parts []part            `json:"parts,omitempty"`
	embedded
	Ignored string `json:"-"`
}

type part struct {
	Title string `json:"title"`
}

type embedded struct {
	Owner string `json:"owner,omitempty"`
}

func (a *app) Key() string { return a.Name }

func (a *app) Validate() error {
	if a.Size < 0 {
		return fmt.Errorf("size: %d is negative", a.Size)
	}
	if a.Name == "panic" {
		panic("told to")
	}
	return nil
}

// jsonNumber keeps a number as it was written.
type jsonNumber string

func (n *jsonNumber) UnmarshalJSON(text []byte) error {
	if string(text) == "666" {
		panic("told to")
	}
	*n = jsonNumber(text)
	return nil
}

func (n jsonNumber) MarshalJSON() ([]byte, error) { return []byte(n), nil }

// state is what a consumer holds: keys and sizes.
type state map[string]int

// quick is quick enough for tests and slow enough that a poll does not hide what
// the watch missed, where a test does not say otherwise.
func quick() *file.Options { return &file.Options{Poll: time.Hour, Settle: 5 * time.Millisecond} }

func newSource(t *testing.T, dir string, opts *file.Options) *file.Source[*app] {
	t.Helper()
	src, err := file.New(dir, (*app).Key, opts)
	require.NoError(t, err)
	return src
}

func list(t *testing.T, src *file.Source[*app]) state {
	t.Helper()
	page, err := src.List(t.Context(), reflector.ListOptions{})
	require.NoError(t, err)
	got := state{}
	for _, item := range page.Items {
		require.Equal(t, item.Key, item.Object.Name)
		got[item.Key] = item.Object.Size
	}
	return got
}

// consumer follows one watch.
type consumer struct {
	t *testing.T

	mu     sync.Mutex
	latest state
	states []state
	err    error
	ended  chan struct{}
}

func follow(t *testing.T, src *file.Source[*app]) *consumer {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := &consumer{t: t, ended: make(chan struct{})}
	go func() {
		defer close(c.ended)
		for batch, err := range src.Watch(ctx, reflector.WatchOptions{Initial: true}) {
			c.take(batch, err)
		}
	}()
	t.Cleanup(func() { cancel(); <-c.ended })
	return c
}

func (c *consumer) take(batch reflector.Batch[*app], err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.err = err
		return
	}
	if !batch.Reset && len(batch.Events) > 0 {
		c.err = errors.New("an event outside a full state")
	}
	if batch.Reset {
		c.latest = state{}
	}
	next := maps.Clone(c.latest)
	for _, e := range batch.Events {
		next[e.Key] = e.Object.Size
	}
	c.latest = next
	if batch.Synced {
		c.states = append(c.states, next)
	}
}

// becomes waits until the consumer holds just this.
func (c *consumer) becomes(want state) {
	c.t.Helper()
	reached := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.latest != nil && maps.Equal(c.latest, want)
	}
	if !assert.Eventually(c.t, reached, 10*time.Second, time.Millisecond) {
		c.mu.Lock()
		defer c.mu.Unlock()
		require.Fail(c.t, "it never came to that", "%v, but %v (%v)", want, c.latest, c.err)
	}
}

func (c *consumer) seen() []state {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]state(nil), c.states...)
}

// write writes a file in place.
func write(t *testing.T, dir, name, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
}

// replace puts a file in another's place by rename, as editors do.
func replace(t *testing.T, dir, name, content string) {
	t.Helper()
	write(t, dir, "."+name+".tmp", content)
	require.NoError(t, os.Rename(filepath.Join(dir, "."+name+".tmp"), filepath.Join(dir, name)))
}

func yamlOf(name string, size int) string { return fmt.Sprintf("name: %s\nsize: %d\n", name, size) }

// faults waits until the faults are n and lists them.
func faults(t *testing.T, src *file.Source[*app], n int) []file.Fault {
	t.Helper()
	require.Eventually(t, func() bool { return len(src.Faults()) == n }, 10*time.Second, time.Millisecond,
		"%v", src.Faults())
	return src.Faults()
}
