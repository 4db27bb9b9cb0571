package informer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"

	"github.com/homeostat/homeostat/indexer"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

type note struct {
	Key, Group string
	Rev        int
	Labels     map[string]string
	Text       string
}

var noteGroup = indexer.By("group", func(n *note) string { return n.Group })

// served is a source that has its objects as bytes, made when they are asked for,
// and decodes them anew for each page.
type served struct {
	count int
	rev   int // one object in a hundred is at this revision, the others at 1
	text  string
	paged func() // after each page
}

func (s *served) Powers() reflector.Powers[*note] {
	return reflector.Powers[*note]{Paged: true, SnapshotPages: true, ResumeProven: true}
}

func (s *served) List(_ context.Context, o reflector.ListOptions) (reflector.Page[*note], error) {
	from := 0
	fmt.Sscan(string(o.Page), &from)
	p := reflector.Page[*note]{Cursor: reflector.Cursor(fmt.Sprint(s.rev))}
	for n := from; n < min(from+o.Limit, s.count); n++ {
		rev := 1
		if n%100 == 0 {
			rev = s.rev
		}
		data := fmt.Appendf(nil, `{"Key":"ns-%d/object-%06d","Group":"group-%d","Rev":%d,"Labels":{"app":"app-%d","tier":"backend"},"Text":%q}`,
			n%10, n, n%50, rev, n%7, s.text)
		obj := new(note)
		if err := json.Unmarshal(data, obj); err != nil {
			return p, err
		}
		p.Items = append(p.Items, object.Item[*note]{Key: obj.Key, Version: object.Version(fmt.Sprint(rev)), Object: obj})
	}
	if from+o.Limit < s.count {
		p.Next = reflector.PageToken(fmt.Sprint(from + o.Limit))
	}
	if s.paged != nil {
		s.paged()
	}
	return p, nil
}

func (s *served) Watch(ctx context.Context, o reflector.WatchOptions) iter.Seq2[reflector.Batch[*note], error] {
	return func(yield func(reflector.Batch[*note], error) bool) {
		if yield(reflector.Bookmark[*note](o.After), nil) {
			<-ctx.Done()
		}
	}
}

// R22: a relist of many objects, of which few have changed, costs the keys and what
// has changed: unchanged objects are let go page by page.
func TestR22_RelistMemory(t *testing.T) {
	count := 100_000
	if testing.Short() || raced {
		count = 10_000
	}
	src := &served{count: count, rev: 1, text: strings.Repeat("some text ", 20)}
	inf := informer.New[*note](src, nil, noteGroup)
	last := fmt.Sprintf("ns-%d/object-%06d", 0, count-100)
	changed := make(chan struct{})
	sub := inf.AddHandler(func(c informer.Change[*note]) {
		if c.Cause == object.Relist && c.Key == last {
			close(changed)
		}
	}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- inf.Run(ctx) }()
	defer func() {
		cancel()
		<-done
	}()
	if err := sub.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	live := func() uint64 {
		runtime.GC()
		sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	before := live()
	peak := uint64(0)
	// The reflector calls the source on one goroutine; the channel below orders the rest.
	src.rev, src.paged = 2, func() { peak = max(peak, live()) }
	inf.Relist("test")
	<-changed
	rise := float64(peak)/float64(before) - 1
	t.Logf("%d objects: %.1f MB live before, %.1f MB at most within: +%.1f %%", count, float64(before)/1e6, float64(peak)/1e6, 100*rise)
	if rise >= 0.2 {
		t.Errorf("the live heap rose by %.1f %%", 100*rise)
	}
}
