package reflector_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/retry"
)

type (
	batch  = reflector.Batch[string]
	event  = reflector.Event[string]
	page   = reflector.Page[string]
	item   = object.Item[string]
	cursor = reflector.Cursor
	powers = reflector.Powers[string]
	yield  = func(batch, error) bool
)

// compare orders cursors like "e1/12" within the part before the slash.
func compare(a, b cursor) int {
	ea, ra, _ := strings.Cut(string(a), "/")
	eb, rb, _ := strings.Cut(string(b), "/")
	if ea != eb {
		return 0
	}
	x, _ := strconv.Atoi(ra)
	y, _ := strconv.Atoi(rb)
	return x - y
}

// items makes items of "a=1": key a, object 1, version 1.
func items(kv ...string) []item {
	var out []item
	for _, s := range kv {
		k, v, _ := strings.Cut(s, "=")
		out = append(out, item{Key: k, Version: object.Version(v), Object: v})
	}
	return out
}

// events makes events of "a=1" (a put) and "-a" (a delete).
func events(kv ...string) []event {
	var out []event
	for _, s := range kv {
		if k, gone := strings.CutPrefix(s, "-"); gone {
			out = append(out, event{Op: reflector.OpDelete, Item: item{Key: k}})
			continue
		}
		out = append(out, event{Op: reflector.OpPut, Known: true, Item: items(s)[0]})
	}
	return out
}

func live(at cursor, kv ...string) batch { return batch{Events: events(kv...), Cursor: at} }
func whole(at cursor, kv ...string) batch {
	return batch{Events: events(kv...), Cursor: at, Reset: true, Synced: true}
}

// source is a scripted one. list and watch are given the number of the call,
// from 1.
type source struct {
	powers powers
	list   func(ctx context.Context, n int, o reflector.ListOptions) (page, error)
	watch  func(ctx context.Context, n int, o reflector.WatchOptions, yield yield)

	mu      sync.Mutex
	lists   []reflector.ListOptions
	watches []reflector.WatchOptions
	at      []time.Time // of each call
}

func (s *source) Powers() powers {
	meet()
	return s.powers
}

func (s *source) List(ctx context.Context, o reflector.ListOptions) (page, error) {
	meet()
	s.mu.Lock()
	s.lists = append(s.lists, o)
	s.at = append(s.at, time.Now())
	n := len(s.lists)
	s.mu.Unlock()
	return s.list(ctx, n, o)
}

func (s *source) Watch(ctx context.Context, o reflector.WatchOptions) iter.Seq2[batch, error] {
	return func(yield func(batch, error) bool) {
		meet()
		s.mu.Lock()
		s.watches = append(s.watches, o)
		s.at = append(s.at, time.Now())
		n := len(s.watches)
		s.mu.Unlock()
		s.watch(ctx, n, o, yield)
	}
}

// calls gives how often List and Watch were called.
func (s *source) calls() (lists, watches int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.lists), len(s.watches)
}

// afters gives where the watches began.
func (s *source) afters() []cursor {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []cursor
	for _, o := range s.watches {
		out = append(out, o.After)
	}
	return out
}

// gaps gives the time between one call and the next.
func (s *source) gaps() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []time.Duration
	for i := 1; i < len(s.at); i++ {
		out = append(out, s.at[i].Sub(s.at[i-1]))
	}
	return out
}

// one answers each list with one page.
func one(at cursor, kv ...string) func(context.Context, int, reflector.ListOptions) (page, error) {
	return func(context.Context, int, reflector.ListOptions) (page, error) {
		return page{Items: items(kv...), Cursor: at}, nil
	}
}

// idle opens where it was asked to and waits for the end.
func idle(ctx context.Context, _ int, o reflector.WatchOptions, yield yield) {
	if yield(batch{Cursor: o.After}, nil) {
		<-ctx.Done()
	}
}

// play opens where it was asked to, yields the batches, and waits for the end.
func play(ctx context.Context, o reflector.WatchOptions, yield yield, bs ...batch) {
	if !yield(batch{Cursor: o.After}, nil) {
		return
	}
	for _, b := range bs {
		if !yield(b, nil) {
			return
		}
	}
	<-ctx.Done()
}

// sink records what it is told, and checks that it is told by the rules.
type sink struct {
	t testing.TB

	mu      sync.Mutex
	state   map[string]item
	cursor  cursor
	log     []string
	open    int // relists that have not ended
	commits int
	same    int // calls of Unchanged
	wary    int // calls of Distrust
	audits  int // relists that were begun as audits

	// Each is asked before the sink does what it is told.
	onApply  func(batch) error
	onBegin  func(object.Cause)
	onStage  func([]item) error
	onCommit func(cursor) error
	onAbort  func()

	onUnchanged func(cursor) error
	// onShow sees each state that readers see.
	onShow func(state map[string]item, why string)
}

func newSink(t testing.TB) *sink { return &sink{t: t, state: map[string]item{}} }

func (s *sink) note(format string, args ...any) {
	s.log = append(s.log, fmt.Sprintf(format, args...))
}

func (s *sink) Apply(b batch, why object.Cause) error {
	meet()
	if b.Reset || b.Synced {
		s.t.Errorf("Apply saw Reset %v, Synced %v", b.Reset, b.Synced)
	}
	if why != object.Watched {
		s.t.Errorf("Apply: cause %v", why)
	}
	if s.onApply != nil {
		if err := s.onApply(b); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	line := "apply"
	for _, e := range b.Events {
		if e.Op == reflector.OpPut {
			s.state[e.Key] = e.Item
			line += fmt.Sprintf(" %s=%s", e.Key, e.Object)
		} else {
			delete(s.state, e.Key)
			line += " -" + e.Key
		}
	}
	if b.Cursor != "" {
		s.cursor = b.Cursor
		line += " @" + string(b.Cursor)
	}
	s.note("%s", line)
	if s.onShow != nil {
		s.onShow(s.state, "apply")
	}
	return nil
}

func (s *sink) Begin(why object.Cause) reflector.Relist[string] {
	meet()
	if s.onBegin != nil {
		s.onBegin(why)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if first := s.commits == 0; (why == object.Initial) != first || !first && why != object.Relist && why != object.Audit {
		s.t.Errorf("Begin: cause %v after %d commits", why, s.commits)
	}
	if s.audits += b2i(why == object.Audit); why != object.Audit {
		if s.open++; s.open > 1 {
			s.t.Errorf("%d relists are open", s.open)
		}
	}
	s.note("begin")
	return &relist{sink: s, why: why, staged: map[string]item{}, kept: map[string]bool{}}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

type relist struct {
	sink   *sink
	why    object.Cause
	staged map[string]item
	kept   map[string]bool
	ended  bool
	keys   bool
}

func (r *relist) Keep(faults []reflector.Fault) {
	r.use()
	for _, f := range faults {
		delete(r.staged, f.Key)
		r.kept[f.Key] = true
	}
}

func (r *relist) Diff() (d reflector.Diff) {
	r.use()
	r.sink.mu.Lock()
	defer r.sink.mu.Unlock()
	d.Of = len(r.sink.state)
	for key, it := range r.staged {
		d.Puts += b2i(r.sink.state[key] != it)
	}
	for key := range r.sink.state {
		_, staged := r.staged[key]
		if !staged && !r.kept[key] {
			d.Deletes++
			h := fnv.New64()
			h.Write([]byte(key))
			d.Gone += h.Sum64()
		}
	}
	return d
}

func (r *relist) use() {
	meet()
	if r.ended {
		r.sink.t.Error("a relist was used after its end")
	}
}

func (r *relist) end() {
	r.use()
	r.ended = true
	r.sink.mu.Lock()
	defer r.sink.mu.Unlock()
	if r.why != object.Audit {
		r.sink.open--
	}
}

func (r *relist) Stage(items []item) error {
	r.use()
	if len(items) == 0 {
		r.sink.t.Error("nothing was staged")
	}
	if r.sink.onStage != nil {
		if err := r.sink.onStage(items); err != nil {
			return err
		}
	}
	for _, it := range items {
		r.staged[it.Key] = it
	}
	return nil
}

func (r *relist) Distrust() {
	r.use()
	if len(r.staged)+len(r.kept) > 0 {
		r.sink.t.Error("Distrust after Stage")
	}
	r.sink.mu.Lock()
	defer r.sink.mu.Unlock()
	r.sink.wary++
}

func (r *relist) StageKeys(items []item) error {
	r.use()
	r.keys = true
	for _, it := range items {
		if it.Object != "" {
			r.sink.t.Errorf("a key with an object: %v", it)
		}
		it.Object = string(it.Version) // as those of items are
		r.staged[it.Key] = it
	}
	return nil
}

func (r *relist) Unstage(key string) {
	r.use()
	delete(r.staged, key)
	delete(r.kept, key)
}

func (r *relist) Commit(at cursor) error {
	r.end()
	if r.keys {
		r.sink.t.Error("keys were committed")
	}
	if r.sink.onCommit != nil {
		if err := r.sink.onCommit(at); err != nil {
			return err
		}
	}
	s := r.sink
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commits++
	for key := range r.kept {
		if it, ok := s.state[key]; ok {
			r.staged[key] = it
		}
	}
	s.state, s.cursor = r.staged, at
	line := "commit"
	if r.why == object.Audit {
		line = "audit"
	}
	for _, k := range slices.Sorted(maps.Keys(s.state)) {
		line += fmt.Sprintf(" %s=%s", k, s.state[k].Object)
	}
	s.note("%s @%s", line, at)
	if s.onShow != nil {
		s.onShow(s.state, "commit")
	}
	return nil
}

func (r *relist) Unchanged(at cursor) error {
	r.end()
	if len(r.staged) > 0 && !r.keys {
		r.sink.t.Error("Unchanged after Stage")
	}
	s := r.sink
	if s.onUnchanged != nil {
		if err := s.onUnchanged(at); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.commits == 0 || s.cursor != at && !r.keys {
		s.t.Errorf("Unchanged at %q after %d commits, the last at %q", at, s.commits, s.cursor)
	}
	s.same++
	return nil
}

func (r *relist) Abort() {
	r.end()
	if r.sink.onAbort != nil {
		r.sink.onAbort()
	}
	r.sink.mu.Lock()
	defer r.sink.mu.Unlock()
	r.sink.note("abort")
}

// shown gives what readers saw change: the log without begins and aborts.
func (s *sink) shown() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.log), func(l string) bool { return l == "begin" || l == "abort" })
}

// lines is the whole log.
func (s *sink) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

// holds gives the state like "a=1 b=2".
func (s *sink) holds() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, k := range slices.Sorted(maps.Keys(s.state)) {
		out = append(out, k+"="+s.state[k].Object)
	}
	return strings.Join(out, " ")
}

// start runs a reflector in the test's bubble until the test ends, and checks
// that Run then returns nil at once and leaves no relist open.
func start(t *testing.T, src reflector.ListWatcher[string], s *sink, o *reflector.Options) *reflector.Reflector[string] {
	t.Helper()
	r := reflector.New(src, s, o)
	begin(t, r, s)
	return r
}

func begin(t *testing.T, r *reflector.Reflector[string], s *sink) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.open != 0 {
			t.Errorf("%d relists were left open", s.open)
		}
		if st := r.Status(); st.State != reflector.Stopped {
			t.Errorf("state %v after Run", st.State)
		}
	})
}

// bubble runs f in virtual time.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// meeting orders what a test changes, before it lets time pass, and what a
// source or sink reads of it afterwards.
var meeting sync.Mutex

func meet() {
	meeting.Lock()
	defer meeting.Unlock()
}

// after lets virtual time pass until all is quiet.
func after(d time.Duration) {
	meet()
	time.Sleep(d)
	synctest.Wait()
}

// nap sleeps, unless ctx ends.
func nap(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// exact is a backoff that tests can count on: 1 s, 2 s, 4 s … 1 min.
var exact = retry.Backoff{Base: time.Second, Max: time.Minute, NoJitter: true}

func want[V comparable](t testing.TB, what string, got, want V) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func wantAll[V comparable](t testing.TB, what string, got []V, want ...V) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}

func wantErr(t testing.TB, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

var (
	errBoom     = errors.New("boom")
	retrySecond = retry.Backoff{Schedule: []time.Duration{time.Second}}
)
