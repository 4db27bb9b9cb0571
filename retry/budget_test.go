package retry_test

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/retry"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"
)

// arrivals lets n callers wait at once and tells when each got through.
func arrivals(t *testing.T, b *retry.Budget, n int) []time.Duration {
	t.Helper()
	start := time.Now()
	var mu sync.Mutex
	var at []time.Duration
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			err := b.Wait(t.Context())
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			at = append(at, time.Since(start))
		})
	}
	all.Wait()
	return at
}

func TestBudgetRate(t *testing.T) {
	const ms = time.Millisecond
	tests := []struct {
		name   string
		budget func() *retry.Budget
		want   []time.Duration
	}{
		{"burst, then the rate", func() *retry.Budget { return retry.NewBudget(10, 2) }, []time.Duration{0, 0, 100 * ms, 200 * ms, 300 * ms}},
		{"no burst is one", func() *retry.Budget { return retry.NewBudget(10, 0) }, []time.Duration{0, 100 * ms, 200 * ms}},
		{"negative burst is one", func() *retry.Budget { return retry.NewBudget(10, -3) }, []time.Duration{0, 100 * ms}},
		{"no rate is no limit", func() *retry.Budget { return retry.NewBudget(0, 1) }, []time.Duration{0, 0, 0, 0}},
		{"negative rate is no limit", func() *retry.Budget { return retry.NewBudget(-1, 1) }, []time.Duration{0, 0, 0, 0}},
		{"a rate that is no number is no limit", func() *retry.Budget { return retry.NewBudget(rate.Limit(math.NaN()), 1) }, []time.Duration{0, 0, 0}},
		{"infinite rate", func() *retry.Budget { return retry.NewBudget(rate.Inf, 0) }, []time.Duration{0, 0, 0, 0}},
		{"zero value", func() *retry.Budget { return new(retry.Budget) }, []time.Duration{0, 0, 0}},
		{"nil", func() *retry.Budget { return nil }, []time.Duration{0, 0, 0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				require.Equal(t, tt.want, arrivals(t, tt.budget(), len(tt.want)))
			})
		})
	}
}

func TestBudgetPause(t *testing.T) {
	const s = time.Second
	tests := []struct {
		name  string
		pause func(*retry.Budget)
		want  time.Duration // when the first gets through
	}{
		{"holds", func(b *retry.Budget) { b.Pause(5 * s) }, 5 * s},
		{"is extended", func(b *retry.Budget) { b.Pause(5 * s); b.Pause(9 * s) }, 9 * s},
		{"is not shortened", func(b *retry.Budget) { b.Pause(9 * s); b.Pause(5 * s) }, 9 * s},
		{"of nothing", func(b *retry.Budget) { b.Pause(0); b.Pause(-s) }, 0},
		{"does not add up", func(b *retry.Budget) { b.Pause(5 * s); time.Sleep(s); b.Pause(3 * s) }, 4 * s},
		{"is over", func(b *retry.Budget) { b.Pause(s); time.Sleep(2 * s) }, 0},
		{"then another", func(b *retry.Budget) { b.Pause(s); time.Sleep(2 * s); b.Pause(s) }, s},
	}
	for _, tt := range tests {
		for name, b := range map[string]func() *retry.Budget{
			" with a rate":    func() *retry.Budget { return retry.NewBudget(1000, 1) },
			" without a rate": func() *retry.Budget { return retry.NewBudget(0, 0) },
		} {
			t.Run(tt.name+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := b()
					tt.pause(b)
					require.Equal(t, []time.Duration{tt.want}, arrivals(t, b, 1))
				})
			})
		}
	}
}

func TestBudgetPauseReachesThoseWhoWait(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	t.Run("for the end of a pause", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := retry.NewBudget(0, 0)
			b.Pause(5 * s)
			time.AfterFunc(3*s, func() { b.Pause(10 * s) })
			require.Equal(t, []time.Duration{13 * s, 13 * s}, arrivals(t, b, 2))
		})
	})
	t.Run("for their turn, and the rate holds afterwards", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := retry.NewBudget(10, 1)
			time.AfterFunc(50*ms, func() { b.Pause(10 * s) })
			at := arrivals(t, b, 5)
			require.Zero(t, at[0])
			require.GreaterOrEqual(t, at[1], 10*s+50*ms)
			for i := 2; i < len(at); i++ {
				require.GreaterOrEqual(t, at[i]-at[i-1], 100*ms, "turns that came up in the pause must not go together: %v", at)
			}
			require.LessOrEqual(t, at[4], 11*s)
		})
	})
}

func TestBudgetWaitEndsWithContext(t *testing.T) {
	cause := errors.New("shutting down")
	tests := map[string]func() *retry.Budget{
		"for a turn":       func() *retry.Budget { b := retry.NewBudget(0.001, 1); b.Wait(context.Background()); return b },
		"for a pause":      func() *retry.Budget { b := retry.NewBudget(0, 0); b.Pause(time.Hour); return b },
		"for a long pause": func() *retry.Budget { b := retry.NewBudget(0, 0); b.Pause(math.MaxInt64); return b },
	}
	for name, budget := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, start := budget(), time.Now()
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(cause) })
				require.Equal(t, cause, b.Wait(ctx))
				require.Equal(t, time.Second, time.Since(start))
			})
		})
	}
	t.Run("that ended before, though there is room", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		require.Equal(t, cause, retry.NewBudget(0, 0).Wait(ctx))
		require.Equal(t, cause, (*retry.Budget)(nil).Wait(ctx))
	})
	t.Run("and gives the turn back", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := retry.NewBudget(1, 1)
			require.NoError(t, b.Wait(t.Context()))
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			require.ErrorIs(t, b.Wait(ctx), context.DeadlineExceeded)
			start := time.Now()
			require.NoError(t, b.Wait(t.Context()))
			require.Less(t, time.Since(start), time.Second)
		})
	})
	t.Run("that would end before the turn: it waits till then", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b, start := retry.NewBudget(0.1, 1), time.Now()
			require.NoError(t, b.Wait(t.Context()))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			require.Equal(t, context.DeadlineExceeded, b.Wait(ctx))
			require.Equal(t, time.Second, time.Since(start))
		})
	})
}

func TestBudgetDo(t *testing.T) {
	tests := []struct {
		name  string
		err   error
		pause time.Duration
	}{
		{"fine", nil, 0},
		{"plain", errBoom, 0},
		{"after", retry.After(errBoom, 5*time.Second), 5 * time.Second},
		{"foreign", throttled(5 * time.Second), 5 * time.Second},
		{"later pauses nobody", retry.Later(time.Hour, "x"), 0},
		{"later beside after", errors.Join(retry.Later(time.Hour, "x"), retry.After(errBoom, time.Second)), time.Second},
		{"permanent", retry.Permanent(errBoom), 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := retry.NewBudget(0, 0)
				require.Equal(t, tt.err, b.Do(t.Context(), func() error { return tt.err }), "the error passes as it is")
				require.Equal(t, []time.Duration{tt.pause}, arrivals(t, b, 1))
			})
		})
	}
	t.Run("waits first", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b, start := retry.NewBudget(1, 1), time.Now()
			for i := range 3 {
				require.NoError(t, b.Do(t.Context(), func() error {
					require.Equal(t, time.Duration(i)*time.Second, time.Since(start))
					return nil
				}))
			}
		})
	})
	t.Run("does not call once ctx ended", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := retry.NewBudget(0, 0).Do(ctx, func() error { t.Error("called"); return nil })
		require.Equal(t, context.Canceled, err)
	})
	t.Run("nil", func(t *testing.T) {
		var b *retry.Budget
		b.Pause(time.Hour)
		err := retry.After(errBoom, time.Hour)
		require.Equal(t, err, b.Do(t.Context(), func() error { return err }))
		require.NoError(t, b.Do(t.Context(), func() error { return nil }))
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestBudgetTransport(t *testing.T) {
	request := func(ctx context.Context) *http.Request {
		r, err := http.NewRequestWithContext(ctx, "PUT", "http://api.example.org/x", strings.NewReader("body"))
		require.NoError(t, err)
		return r
	}
	t.Run("counts each call", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			start, fine := time.Now(), answer(200)
			tr := retry.NewBudget(1, 1).Transport(roundTrip(func(r *http.Request) (*http.Response, error) {
				require.Equal(t, "PUT", r.Method)
				return fine, nil
			}))
			for i := range 3 {
				resp, err := tr.RoundTrip(request(t.Context()))
				require.NoError(t, err)
				require.Same(t, fine, resp)
				require.Equal(t, time.Duration(i)*time.Second, time.Since(start))
			}
		})
	})
	t.Run("pauses", func(t *testing.T) {
		tests := []struct {
			name  string
			resp  *http.Response
			err   error
			pause time.Duration
		}{
			{"by 429", answer(429, "Retry-After", "7"), nil, 7 * time.Second},
			{"by 503", answer(503, "Retry-After", "7"), nil, 7 * time.Second},
			{"not by 503 alone", answer(503), nil, 0},
			{"not by 200", answer(200, "Retry-After", "7"), nil, 0},
			{"by an error", nil, throttled(7 * time.Second), 7 * time.Second},
			{"not by another error", nil, errBoom, 0},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := retry.NewBudget(0, 0)
					resp, err := b.Transport(roundTrip(func(*http.Request) (*http.Response, error) {
						return tt.resp, tt.err
					})).RoundTrip(request(t.Context()))
					require.Equal(t, tt.err, err)
					require.Equal(t, tt.resp, resp)
					require.Equal(t, []time.Duration{tt.pause}, arrivals(t, b, 1))
				})
			})
		}
	})
	t.Run("closes the body of a call that is not made", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		tr := retry.NewBudget(0, 0).Transport(roundTrip(func(*http.Request) (*http.Response, error) {
			t.Error("called")
			return nil, nil
		}))
		body := &closing{Reader: strings.NewReader("x")}
		r := request(ctx)
		r.Body = body
		_, err := tr.RoundTrip(r)
		require.Equal(t, context.Canceled, err)
		require.True(t, body.closed)
		r.Body = nil
		_, err = tr.RoundTrip(r)
		require.Equal(t, context.Canceled, err)
	})
	t.Run("stands in front of another", func(t *testing.T) {
		inner := &idle{roundTrip: func(*http.Request) (*http.Response, error) { return answer(204), nil }}
		client := http.Client{Transport: (*retry.Budget)(nil).Transport(inner)}
		resp, err := client.Do(request(t.Context()))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		client.CloseIdleConnections()
		require.True(t, inner.closed)
		client.Transport = new(retry.Budget).Transport(inner.roundTrip)
		client.CloseIdleConnections() // nothing to pass it on to
	})
	t.Run("stands in front of the default", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := new(retry.Budget).Transport(nil).RoundTrip(request(ctx))
		require.Equal(t, context.Canceled, err)
		r := request(t.Context())
		r.URL.Scheme = "no-such-scheme"
		_, err = new(retry.Budget).Transport(nil).RoundTrip(r)
		require.ErrorContains(t, err, "unsupported protocol scheme")
	})
}

type idle struct {
	roundTrip
	closed bool
}

func (i *idle) CloseIdleConnections() { i.closed = true }
