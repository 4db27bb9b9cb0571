package reflector_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/homeostat/homeostat/reflector"
)

// nilError is an error whose methods panic on nil, as most do.
type nilError struct{ err error }

func (e *nilError) Error() string { return e.err.Error() }
func (e *nilError) Unwrap() error { return e.err }

// mute has a text that can't be had, and nothing else.
type mute struct{ err error }

func (e *mute) Error() string { return e.err.Error() }

// An error whose methods panic is a failure like others: it ends nothing, holds no
// lock, and says whose it is.
func TestErrorsThatCannotBeAsked(t *testing.T) {
	for name, bad := range map[string]error{"typed nil": (*nilError)(nil), "without a text": (*mute)(nil)} {
		for in, set := range map[string]func(src *source, s *sink){
			"source List": func(src *source, _ *sink) {
				src.list = func(context.Context, int, reflector.ListOptions) (page, error) { return page{}, bad }
			},
			"source Watch": func(src *source, _ *sink) {
				src.watch = func(_ context.Context, _ int, o reflector.WatchOptions, yield yield) {
					if yield(batch{Cursor: o.After}, nil) {
						yield(batch{}, bad)
					}
				}
			},
			"sink Stage":  func(_ *source, s *sink) { s.onStage = func([]item) error { return bad } },
			"sink Commit": func(_ *source, s *sink) { s.onCommit = func(cursor) error { return bad } },
			"sink Apply":  func(_ *source, s *sink) { s.onApply = func(batch) error { return bad } },
		} {
			t.Run(name+" of "+in, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					src := &source{list: one("5", "a=1")}
					src.watch = func(ctx context.Context, _ int, o reflector.WatchOptions, yield yield) {
						play(ctx, o, yield, live("6", "b=1"))
					}
					s := newSink(t)
					set(src, s)
					r := start(t, src, s, &reflector.Options{Backoff: exact})
					after(0)
					st := r.Status()
					want(t, "state", st.State, reflector.BackingOff)
					p, ok := errors.AsType[*reflector.PanicError](st.Err)
					if !ok || p.In != in {
						t.Errorf("err: %v", st.Err)
					}
					if _, err := json.Marshal(st); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// A status prints whatever error is in it.
func TestStatusPrintsAnyError(t *testing.T) {
	if _, err := json.Marshal(reflector.Status{Err: (*nilError)(nil), Fallback: (*nilError)(nil)}); err != nil {
		t.Error(err)
	}
}
