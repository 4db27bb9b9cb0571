package retry_test

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/homeostat/homeostat/retry"
	"github.com/stretchr/testify/require"
)

var errBoom = errors.New("boom")

// throttled is another library's error that says when to come back.
type throttled time.Duration

func (e throttled) Error() string             { return "throttled" }
func (e throttled) RetryAfter() time.Duration { return time.Duration(e) }

// throttling is the same around another error.
type throttling struct {
	error
	after time.Duration
}

func (e throttling) Unwrap() error             { return e.error }
func (e throttling) RetryAfter() time.Duration { return e.after }

// hollow wraps nothing but has the method.
type hollow struct{}

func (hollow) Error() string { return "hollow" }
func (hollow) Unwrap() error { return nil }

type holes []error

func (holes) Error() string     { return "holes" }
func (h holes) Unwrap() []error { return h }

func TestTree(t *testing.T) {
	later := func(d time.Duration) error { return retry.Later(d, "x") }
	after := func(d time.Duration) error { return retry.After(errBoom, d) }
	wrap := func(err error) error { return fmt.Errorf("saving: %w", err) }
	const s = time.Second

	tests := []struct {
		name             string
		err              error
		delay            time.Duration
		named            bool
		permanent, later bool
	}{
		{name: "nil"},
		{name: "plain", err: errBoom},
		{name: "wrapped plain", err: wrap(errBoom)},
		{name: "wraps nothing", err: hollow{}},
		{name: "wraps nil errors", err: holes{nil, nil}},

		{name: "later", err: later(5 * s), delay: 5 * s, named: true, later: true},
		{name: "later at once", err: later(0), named: true, later: true},
		{name: "later, negative", err: later(-s), named: true, later: true},
		{name: "wrapped later", err: wrap(wrap(later(5 * s))), delay: 5 * s, named: true, later: true},
		{name: "two laters", err: errors.Join(later(s), later(5*s), later(2*s)), delay: 5 * s, named: true, later: true},
		{name: "laters with a hole", err: holes{nil, later(s), nil}, delay: s, named: true, later: true},
		{name: "later first, then a failure", err: errors.Join(later(5*s), errBoom), delay: 5 * s, named: true},
		{name: "failure first, then later", err: errors.Join(errBoom, later(5*s)), delay: 5 * s, named: true},
		{name: "later and a failure in one format", err: fmt.Errorf("%w: %w", io.EOF, later(5*s)), delay: 5 * s, named: true},
		{name: "failure deep in a branch", err: errors.Join(later(s), wrap(errors.Join(later(2*s), wrap(errBoom)))), delay: 2 * s, named: true},

		{name: "after", err: after(5 * s), delay: 5 * s, named: true},
		{name: "after, at once", err: after(0), named: true},
		{name: "after, negative", err: after(-s), named: true},
		{name: "wrapped after", err: wrap(after(5 * s)), delay: 5 * s, named: true},
		{name: "after around later is a failure", err: retry.After(later(s), 5*s), delay: 5 * s, named: true},
		{name: "after around a longer later", err: retry.After(later(9*s), 5*s), delay: 9 * s, named: true},
		{name: "after around a longer after", err: retry.After(wrap(after(9*s)), 5*s), delay: 9 * s, named: true},
		{name: "after around a shorter after", err: retry.After(after(s), 5*s), delay: 5 * s, named: true},
		{name: "longest of both, after", err: errors.Join(later(s), after(5*s)), delay: 5 * s, named: true},
		{name: "longest of both, later", err: errors.Join(later(5*s), after(s)), delay: 5 * s, named: true},

		{name: "permanent", err: retry.Permanent(errBoom), permanent: true},
		{name: "wrapped permanent", err: wrap(retry.Permanent(errBoom)), permanent: true},
		{name: "permanent around later", err: retry.Permanent(later(s)), delay: s, named: true, permanent: true},
		{name: "after around permanent", err: retry.After(retry.Permanent(errBoom), s), delay: s, named: true, permanent: true},
		{name: "permanent beats later", err: errors.Join(later(s), retry.Permanent(errBoom)), delay: s, named: true, permanent: true},
		{name: "permanent beats after", err: errors.Join(retry.Permanent(errBoom), after(s)), delay: s, named: true, permanent: true},
		{name: "permanent in one format", err: fmt.Errorf("%w, %w", errBoom, retry.Permanent(io.EOF)), permanent: true},

		{name: "foreign", err: throttled(5 * s), delay: 5 * s, named: true},
		{name: "foreign, wrapped", err: wrap(throttled(5 * s)), delay: 5 * s, named: true},
		{name: "foreign, not told", err: throttled(0)},
		{name: "foreign, negative", err: throttled(-s)},
		{name: "foreign around after", err: throttling{after(5 * s), s}, delay: 5 * s, named: true},
		{name: "foreign around later is a failure", err: throttling{later(s), 5 * s}, delay: 5 * s, named: true},
		{name: "foreign, joined", err: errors.Join(after(s), throttled(5*s)), delay: 5 * s, named: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, named := retry.Delay(tt.err)
			require.Equal(t, tt.delay, d, "delay")
			require.Equal(t, tt.named, named, "named")
			require.Equal(t, tt.permanent, retry.IsPermanent(tt.err), "permanent")
			require.Equal(t, tt.later, retry.IsLater(tt.err), "later")
		})
	}
}

func TestNilStaysNil(t *testing.T) {
	require.NoError(t, retry.After(nil, time.Second))
	require.NoError(t, retry.Permanent(nil))
}

func TestWrappedErrorsStayVisible(t *testing.T) {
	for _, err := range []error{
		retry.After(errBoom, time.Second),
		retry.Permanent(errBoom),
		retry.After(retry.Permanent(errBoom), time.Second),
	} {
		require.ErrorIs(t, err, errBoom)
	}
	var foreign throttled
	require.ErrorAs(t, retry.Permanent(throttled(3)), &foreign)
	require.Equal(t, throttled(3), foreign)
}

// Other libraries that know the method understand our word too.
func TestAfterSpeaksForeign(t *testing.T) {
	var foreign interface{ RetryAfter() time.Duration }
	require.ErrorAs(t, retry.After(errBoom, 7*time.Second), &foreign)
	require.Equal(t, 7*time.Second, foreign.RetryAfter())
}

func TestTexts(t *testing.T) {
	for want, err := range map[string]error{
		"later: waiting for the volume (in 10s)": retry.Later(10*time.Second, "waiting for the volume"),
		"later (in 1m0s)":                        retry.Later(time.Minute, ""),
		"later: soon (in 0s)":                    retry.Later(-1, "soon"),
		"boom (again after 2s)":                  retry.After(errBoom, 2*time.Second),
		"permanent: boom":                        retry.Permanent(errBoom),
	} {
		require.Equal(t, want, err.Error())
	}
}
