package fake_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/fake"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/patch"
	"github.com/homeostat/homeostat/reflector"
	"github.com/stretchr/testify/require"
)

type pod struct {
	N    int               `json:"n,omitempty"`
	Tags map[string]string `json:"tags,omitempty"`
	By   string            `json:"by,omitempty"`
}

type item = object.Item[pod]

func must[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}

func merge(format string, args ...any) patch.Patch {
	return must(patch.Merge(fmt.Appendf(nil, format, args...)))
}

func plan(faults ...fake.Fault) fake.Plan { return fake.Plan{Seed: 1, Faults: faults} }

// lines is the log as text.
func lines(b *fake.Backend[pod]) []string {
	var all []string
	for _, c := range b.Log() {
		all = append(all, c.String())
	}
	return all
}

// told is what a watch tells within a second of the bubble's time.
func told(t *testing.T, b backend.Backend[pod], opts reflector.WatchOptions) ([]reflector.Batch[pod], error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var all []reflector.Batch[pod]
	for batch, err := range b.Watch(ctx, opts) {
		if err != nil {
			return all, err
		}
		batch.Events = slices.Clone(batch.Events)
		all = append(all, batch)
	}
	return all, nil
}

func at(c reflector.Cursor, rev int) reflector.Cursor {
	return reflector.Cursor(fmt.Sprint(strings.TrimRight(string(c), "0123456789"), rev))
}

// mirror keeps a map equal to a source as simply as can be: list, watch, resume
// where the last watch ended, and list again when the source says so.
type mirror struct {
	src     reflector.ListWatcher[pod]
	state   map[string]item
	at      reflector.Cursor
	initial bool          // streams the list instead
	pause   time.Duration // between sessions
	lists   int
	seen    map[string]int64 // the newest version of each key
	err     error
}

func (m *mirror) run(ctx context.Context) {
	m.seen = map[string]int64{}
	for ctx.Err() == nil {
		err := m.session(ctx)
		if errors.Is(err, reflector.ErrExpired) || errors.Is(err, reflector.ErrFutureCursor) {
			m.at = ""
		}
		wait(ctx, m.pause)
	}
}

func (m *mirror) session(ctx context.Context) error {
	if m.at == "" && !m.initial {
		page, err := m.src.List(ctx, reflector.ListOptions{})
		if err != nil {
			return err
		}
		m.lists++
		m.state = map[string]item{}
		for _, it := range page.Items {
			m.put(it)
		}
		m.at = page.Cursor
	}
	staged := map[string]item(nil)
	for b, err := range m.src.Watch(ctx, reflector.WatchOptions{After: m.at}) {
		if err != nil {
			return err
		}
		if b.Reset {
			m.lists++
			staged = m.state
			m.state = map[string]item{}
		}
		for _, e := range b.Events {
			if e.Op == reflector.OpDelete {
				delete(m.state, e.Key)
			} else {
				m.put(e.Item)
			}
		}
		if b.Synced {
			staged = nil
		}
		if staged == nil && b.Cursor != "" {
			m.at = b.Cursor
		}
	}
	if staged != nil {
		m.state, m.at = staged, ""
	}
	return nil
}

func (m *mirror) put(it item) {
	m.state[it.Key] = it
	v := int64(0)
	fmt.Sscan(string(it.Version), &v)
	if v < m.seen[it.Key] {
		m.err = fmt.Errorf("%s went back from %d to %d", it.Key, m.seen[it.Key], v)
	}
	m.seen[it.Key] = v
}

func (m *mirror) equals(t *testing.T, items []item) {
	t.Helper()
	require.NoError(t, m.err)
	want := map[string]item{}
	for _, it := range items {
		want[it.Key] = it
	}
	require.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(m.state)))
	require.Equal(t, want, m.state)
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func failed(t *testing.T, err error, want backend.Error) {
	t.Helper()
	var e *backend.Error
	require.ErrorAs(t, err, &e)
	require.ErrorIs(t, err, want.Err)
	got := *e
	got.Err = want.Err
	require.Equal(t, want, got)
}
