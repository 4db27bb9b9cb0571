package fake_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/fake"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
	"github.com/stretchr/testify/require"
)

// say is batches as text, each by revision: "2<3 b" is b at revision 3, after 2.
func say(batches []reflector.Batch[pod]) string {
	rev := func(c reflector.Cursor) string { return string(c)[strings.IndexByte(string(c), '.')+1:] }
	var all []string
	for _, b := range batches {
		text := rev(b.Cursor)
		if b.Prev != "" {
			text = rev(b.Prev) + "<" + text
		}
		for _, e := range b.Events {
			text += " " + e.Key
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

func TestDropAndReorder(t *testing.T) {
	cases := []struct {
		name  string
		fault fake.Fault
		more  []fake.Fault
		want  string
	}{
		{name: "drop", fault: fake.Fault{Do: fake.Drop, Call: 1}, want: "0, 1<2 c, 2<3 d, 3<4 e"},
		{name: "drop, unseen", fault: fake.Fault{Do: fake.Drop, Call: 1, Unseen: true}, want: "0, 0<2 c, 2<3 d, 3<4 e"},
		{name: "drop everything", fault: fake.Fault{Do: fake.Drop}, want: "0"},
		{name: "reorder", fault: fake.Fault{Do: fake.Reorder, Call: 1}, want: "0, 1<2 c, 0<1 b, 2<3 d, 3<4 e"},
		{name: "reorder, unseen", fault: fake.Fault{Do: fake.Reorder, Call: 1, Unseen: true}, want: "0, 0<2 c, 2<1 b, 1<3 d, 3<4 e"},
		{name: "reorder everything", fault: fake.Fault{Do: fake.Reorder}, want: "0, 1<2 c, 0<1 b, 3<4 e, 2<3 d"},
		{name: "what is dropped is not reordered", fault: fake.Fault{Do: fake.Drop, Call: 1}, more: []fake.Fault{{Do: fake.Reorder, Call: 1}}, want: "0, 1<2 c, 2<3 d, 3<4 e"},
		{name: "a drop unseen, an order seen", fault: fake.Fault{Do: fake.Drop, Call: 1, Unseen: true}, more: []fake.Fault{{Do: fake.Reorder}}, want: "0, 2<3 d, 0<2 c"},
		{name: "a drop seen, an order unseen", fault: fake.Fault{Do: fake.Drop, Call: 1}, more: []fake.Fault{{Do: fake.Reorder, Unseen: true}}, want: "0, 1<3 d, 3<2 c"},
		{name: "what is held is not duplicated", fault: fake.Fault{Do: fake.Reorder, Call: 1}, more: []fake.Fault{{Do: fake.Duplicate}}, want: "0, 1<2 c, 0<1 b, 1<2 c, 2<3 d, 2<3 d, 3<4 e, 3<4 e"},
		{name: "duplicate by call", fault: fake.Fault{Do: fake.Duplicate, Call: 1}, want: "0, 0<1 b, 0<1 b, 1<2 c, 2<3 d, 3<4 e"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := fake.New[pod](plan(append([]fake.Fault{c.fault}, c.more...)...))
				start := must(b.List(t.Context(), listAll)).Cursor
				feed(b, 1, 4)
				got, err := told(t, b, reflector.WatchOptions{After: start})
				require.NoError(t, err)
				require.Equal(t, c.want, say(got))
				require.Contains(t, strings.Join(lines(b), "\n"), ": "+c.fault.Do.String())
			})
		})
	}
}

// What is dropped shows in the next bookmark too, unless the source does not know.
func TestDropAndReorderBeforeABookmark(t *testing.T) {
	for fault, want := range map[fake.Fault]string{
		{Do: fake.Drop}:                  "0, 1<1",
		{Do: fake.Drop, Unseen: true}:    "0, 0<1",
		{Do: fake.Reorder}:               "0, 0<1 b, 1<1",
		{Do: fake.Reorder, Unseen: true}: "0, 0<1 b, 1<1",
	} {
		synctest.Test(t, func(t *testing.T) {
			b := fake.New[pod](plan(fault))
			start := must(b.List(t.Context(), listAll)).Cursor
			feed(b, 1, 1)
			got, err := told(t, b, reflector.WatchOptions{After: start, ProgressEvery: 700 * time.Millisecond})
			require.NoError(t, err)
			require.Equal(t, want, say(got))
		})
	}
}

// A streamed list, bookmarks and the ends of a watch are not lost.
func TestDropSparesLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := fake.New[pod](plan(fake.Fault{Do: fake.Drop}, fake.Fault{Do: fake.Reorder}, fake.Fault{Do: fake.Cut, OneIn: 8}))
		for i := range 1200 {
			must(b.Create(t.Context(), fmt.Sprint(i), pod{}))
		}
		got, err := told(t, b, reflector.WatchOptions{Initial: true})
		require.NoError(t, err)
		require.Len(t, got, 3)
		require.True(t, got[2].Synced)
	})
}

// Delay makes a watch lag, by a time and not by a number of batches.
func TestDelayOfAWatchIsLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := fake.New[pod](plan(fake.Fault{On: fake.Watch, Do: fake.Delay, For: 2 * time.Second}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		go func() {
			time.Sleep(5 * time.Second)
			for i := range 300 { // for six seconds, in bursts and one by one
				must(b.Create(ctx, fmt.Sprint(i), pod{N: int(time.Since(start).Milliseconds())}))
				if i%3 == 0 {
					time.Sleep(60 * time.Millisecond)
				}
			}
		}()
		n := 0
		for batch, err := range b.Watch(ctx, reflector.WatchOptions{ProgressEvery: 10 * time.Second}) {
			require.NoError(t, err)
			for _, e := range batch.Events {
				lag := time.Since(start) - time.Duration(e.Object.N)*time.Millisecond
				require.GreaterOrEqual(t, lag, 2*time.Second)
				require.LessOrEqual(t, lag, 4*time.Second)
				n++
			}
		}
		require.Equal(t, 300, n)
		b.SetPlan(fake.Plan{})
	})
}

func TestPartialPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := fake.New(plan(fake.Fault{Do: fake.PartialPage, Call: 2}), item{Key: "a"}, item{Key: "b"}, item{Key: "c"}, item{Key: "d"}, item{Key: "e"})
		paged := reflector.ListOptions{Limit: 3}
		first := must(b.List(t.Context(), paged))
		require.Len(t, first.Items, 3)
		paged.Page = first.Next
		second := must(b.List(t.Context(), paged))
		require.Len(t, second.Items, 1)
		require.Empty(t, second.Next)
		require.Equal(t, "list #2 at 5: partial page", lines(b)[1])

		b.SetPlan(plan(fake.Fault{Do: fake.PartialPage}))
		page := must(b.List(t.Context(), reflector.ListOptions{Limit: 3}))
		require.Len(t, page.Items, 1)
		require.Empty(t, page.Next, "the lie")
		got, err := told(t, b, reflector.WatchOptions{})
		require.NoError(t, err)
		require.Len(t, got[0].Events, 2)
		require.True(t, got[0].Synced)
		for _, key := range []string{"b", "c", "d", "e"} {
			must(b.Delete(t.Context(), key, object.Any))
		}
		require.Empty(t, must(b.List(t.Context(), listAll)).Items, "half of one is none")
	})
}
