package backendtest

import (
	"context"
	"errors"
	"fmt"

	"github.com/homeostat/homeostat/reflector"
)

func faultChecks[T any]() []check[T] {
	return []check[T]{
		{Check{"object/undecodable", []string{"reflector 10"}, "an object that cannot be decoded is named as a Fault, or ends the list or watch; it is never left out, and all others are told"}, undecodable[T]},
	}
}

func undecodable[T any](k *kit[T]) {
	st := k.open()
	k.need("Harness.Spoil", st.fx.Spoil != nil)
	st.fill(min(k.h.Many, 100)) // more than a batch of a full state may have
	spoilt, well := k.h.Key(1), k.h.Key(2)
	base := st.client()
	live := st.watch(reflector.WatchOptions{After: base.at}, nil)
	k.must(live.opensWhole())
	st.do("Spoil", func(ctx context.Context) error { return st.fx.Spoil(ctx, spoilt) })
	st.namesIn("a watch that was open", live, spoilt, "")
	k.must(live.stop())

	listed := func() error { return st.namesInList(spoilt, well) }
	if st.powers.StaleLists {
		k.must(k.soon(listed))
	} else {
		k.must(listed())
	}
	if st.powers.Initial {
		s := st.watch(reflector.WatchOptions{Initial: true}, nil)
		st.namesIn("a full state that is streamed", s, spoilt, well)
		k.must(s.stop())
	}
	// It is well again.
	st.write(k.put(spoilt))
	c := &client[T]{st: st, patient: true, relist: true}
	k.must(c.follow("the present state, once everything can be decoded again,", c.current))
}

// opensWhole is opens that also takes the full state with which the watch begins, if
// it does.
func (s *session[T]) opensWhole() error {
	staging := false
	for n := 0; n == 0 || staging; n++ {
		e, ok := s.next(s.k.h.Wait, nil)
		switch {
		case !ok:
			return fmt.Errorf("a watch does not open, or does not end the full state that it begins with, within %v", s.k.h.Wait)
		case e.err != nil:
			return fmt.Errorf("a watch does not open: %w", e.err)
		case e.over:
			return errors.New("a watch ended while it was opening")
		}
		staging = (staging || e.batch.Reset) && !e.batch.Synced
	}
	return nil
}

// namesInList wants a list to name what cannot be decoded, and to have the rest, or to
// fail.
func (st *store[T]) namesInList(spoilt, well string) error {
	opts := reflector.ListOptions{}
	there, named := map[string]bool{}, false
	for {
		page, err := st.page(st.k.ctx, opts)
		if errors.Is(err, errStuck) || errors.Is(err, errPanic) {
			return err
		}
		if err != nil {
			return nil
		}
		for _, item := range page.Items {
			there[item.Key] = true
		}
		named = named || faultOf(page.Faults, spoilt)
		if page.Next == "" || page.Next == opts.Page {
			break
		}
		opts.Page = page.Next
	}
	switch {
	case there[spoilt]:
		return fmt.Errorf("a list shows %q, which cannot be decoded, as if it could", spoilt)
	case !named:
		return fmt.Errorf("a list leaves out %q, which cannot be decoded: it is no Fault of a page", spoilt)
	case !there[well]:
		return fmt.Errorf("a list that names what it cannot decode leaves out %q, which it can", well)
	}
	return nil
}

// namesIn wants a session to name what cannot be decoded, or to end; and, unless it is
// "", to tell of well, in the same full state.
func (st *store[T]) namesIn(what string, s *session[T], spoilt, well string) {
	k := st.k
	named, told, gone := false, well == "", false
	for end := nowPlus(k.h.Wait); ; {
		e, ok := s.next(k.h.Wait, nil)
		if !ok || nowPlus(0).After(end) {
			k.fail("%s says nothing of %q, which cannot be decoded, within %v", what, spoilt, k.h.Wait)
		}
		if e.err != nil || e.over {
			return
		}
		for _, ev := range e.batch.Events {
			told = told || ev.Key == well
			if ev.Key == spoilt { // what is told last of it counts
				named, gone = false, ev.Op == reflector.OpDelete
			}
		}
		if faultOf(e.batch.Faults, spoilt) {
			named, gone = true, false
		}
		switch {
		case gone && !s.opts.Initial:
			k.fail("%s says that %q is deleted; it is there, and cannot be decoded", what, spoilt)
		case s.opts.Initial && !e.batch.Synced:
		case named && told:
			return
		case e.batch.Synced && s.opts.Initial: // others may have begun before it was spoilt
			k.fail("%s ends without %s", what, missing(named, spoilt, well))
		}
	}
}

func missing(named bool, spoilt, well string) string {
	if !named {
		return fmt.Sprintf("%q as what cannot be decoded", spoilt)
	}
	return fmt.Sprintf("%q, which can be decoded", well)
}

func faultOf(faults []reflector.Fault, key string) bool {
	for _, f := range faults {
		if f.Key == key {
			return true
		}
	}
	return false
}
