package reflector

import (
	"context"
	"iter"
	"sync"
)

// hinted is what was hinted and not looked at yet: each key once, however often
// it was hinted.
type hinted struct {
	keyed bool // keys are of use: they can be fetched

	mu   sync.Mutex
	keys []string // in the order in which they were first hinted
	set  map[string]struct{}
	all  bool // anything may have changed
	over bool // no more hints are to come
	err  error

	news chan struct{} // has room for one: there is something to take
}

// mostKeys is how many keys are fetched one by one at most: with more of them
// pending, everything is listed. It also bounds what is kept.
const mostKeys = 500

func newHinted(keyed bool) *hinted {
	return &hinted{keyed: keyed, set: map[string]struct{}{}, news: make(chan struct{}, 1)}
}

// collect takes hints until they end, on a goroutine of its own: so hints are taken
// while what came before them is fetched, and put together meanwhile. It
// gives the function that ends it and waits for it.
func (h *hinted) collect(ctx context.Context, hints func(context.Context) iter.Seq2[string, error]) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.end(each(ctx, hints, h.add))
	}()
	return func() {
		cancel()
		<-done
	}
}

// each calls f with each hint. Its error is that of the hints, or their panic.
func each(ctx context.Context, hints func(context.Context) iter.Seq2[string, error], f func(string)) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = caught("hints", "", v)
		}
	}()
	for key, err := range hints(ctx) {
		if err != nil || ctx.Err() != nil {
			return err
		}
		f(key)
	}
	return nil
}

func (h *hinted) add(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, known := h.set[key]
	switch {
	case h.all || known:
	case key == "" || !h.keyed || len(h.keys) == mostKeys:
		h.all, h.keys = true, nil
		clear(h.set)
	default:
		h.keys = append(h.keys, key)
		h.set[key] = struct{}{}
	}
	h.ring()
}

func (h *hinted) end(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over, h.err = true, err
	h.ring()
}

func (h *hinted) ring() {
	select {
	case h.news <- struct{}{}:
	default:
	}
}

// take waits for a hint and gives the oldest key, or "" for anything. From then on
// the key is pending again if it is hinted again: what is fetched now may be older
// than that hint. more is false when the hints are over, or ctx is, and nothing is
// left. An error goes before what is left: the full state that follows it makes up
// for that.
func (h *hinted) take(ctx context.Context) (key string, more bool, err error) {
	for {
		key, more, over, err := h.next()
		if more || over {
			return key, more, err
		}
		select {
		case <-h.news:
		case <-ctx.Done():
			return "", false, nil
		}
	}
}

func (h *hinted) next() (key string, more, over bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.err != nil:
	case h.all:
		h.all = false
		return "", true, false, nil
	case len(h.keys) > 0:
		key, h.keys = h.keys[0], h.keys[1:]
		delete(h.set, key)
		return key, true, false, nil
	}
	return "", false, h.over, h.err
}
