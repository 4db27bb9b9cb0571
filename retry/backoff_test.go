package retry_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/homeostat/homeostat/retry"
	"github.com/stretchr/testify/require"
)

// manyFailures are the counts at which arithmetic goes wrong.
var manyFailures = []int{math.MinInt, -1, 0, 1, 2, 3, 10, 52, 53, 62, 63, 64, 65, 1000, 1<<31 - 1, math.MaxInt}

// Row Q20: the schedule is data, and a pure function of the count.
func TestQ20_DocumentedSchedule(t *testing.T) {
	const ms = time.Millisecond
	tests := []struct {
		name    string
		backoff retry.Backoff
		want    []time.Duration
		longest time.Duration
	}{
		{"zero value without jitter", retry.Backoff{NoJitter: true},
			[]time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 6400 * ms, 12800 * ms, 25600 * ms, 51200 * ms, time.Minute, time.Minute}, time.Minute},
		{"saturates at Max", retry.Backoff{Base: ms, Max: 5 * ms, NoJitter: true},
			[]time.Duration{ms, 2 * ms, 4 * ms, 5 * ms, 5 * ms}, 5 * ms},
		{"saturates at the end of integers", retry.Backoff{Base: 1 << 62, Max: 1<<63 - 1, NoJitter: true},
			[]time.Duration{1 << 62, 1<<63 - 1, 1<<63 - 1}, 1<<63 - 1},
		{"other factor", retry.Backoff{Base: 16 * ms, Factor: 1.5, NoJitter: true},
			[]time.Duration{16 * ms, 24 * ms, 36 * ms, 54 * ms}, time.Minute},
		{"constant", retry.Backoff{Base: ms, Factor: 1}, []time.Duration{ms, ms, ms}, 0},
		{"schedule, last repeats", retry.Backoff{Schedule: []time.Duration{3, 1, 2}, Base: 50, Max: 60},
			[]time.Duration{3, 1, 2, 2, 2}, 2},
		{"empty schedule is none", retry.Backoff{Schedule: []time.Duration{}, Base: ms, NoJitter: true},
			[]time.Duration{ms, 2 * ms}, time.Minute},
		{"short Max lowers the default Base", retry.Backoff{Max: 10 * ms}, []time.Duration{10 * ms, 10 * ms}, 0},
		{"long Base raises the default Max", retry.Backoff{Base: time.Hour}, []time.Duration{time.Hour, time.Hour}, time.Hour},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.NoError(t, tt.backoff.Validate())
			for i, want := range tt.want {
				require.Equal(t, want, tt.backoff.Delay(i+1), "failure %d", i+1)
			}
			require.Equal(t, tt.want[0], tt.backoff.Delay(0), "less than one failure is one")
			require.Equal(t, tt.want[0], tt.backoff.Delay(math.MinInt))
			if tt.longest > 0 {
				require.Equal(t, tt.longest, tt.backoff.Longest())
			}
		})
	}
}

// Row Q18: within [Base, Max] and never negative for any count.
func TestQ18_DelayStaysInRange(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0))
	lengths := []time.Duration{1, 2, 1000, time.Millisecond, time.Second, 200*24*time.Hour + 1, math.MaxInt64 - 600, math.MaxInt64}
	for range 20_000 {
		b := retry.Backoff{
			Base:     lengths[rng.IntN(len(lengths))],
			Max:      lengths[rng.IntN(len(lengths))],
			Factor:   []float64{0, 1, 1.0000001, 1.5, 2, 1e300, math.MaxFloat64}[rng.IntN(7)],
			NoJitter: rng.IntN(2) == 0,
		}
		if b.Max < b.Base {
			b.Max, b.Base = b.Base, b.Max
		}
		require.NoError(t, b.Validate())
		n := manyFailures[rng.IntN(len(manyFailures))]
		d := b.Delay(n)
		require.True(t, b.Base <= d && d <= b.Max, "seed %d: %+v after %d failures: %v", seed, b, n, d)
		l := b.Longest()
		require.True(t, max(b.Base, b.Max/2) <= l && l <= b.Max, "seed %d: %+v longest: %v", seed, b, l)
	}
}

func TestDelayIsUniform(t *testing.T) {
	b := retry.Backoff{Base: 100, Max: 1000}
	for _, tt := range []struct {
		attempt   int
		low, high time.Duration
	}{{1, 100, 200}, {2, 100, 400}, {3, 100, 800}, {4, 100, 1000}, {5, 100, 1000}, {math.MaxInt, 100, 1000}} {
		spread(t, fmt.Sprint("attempt ", tt.attempt), tt.low, tt.high, func() time.Duration { return b.Delay(tt.attempt) })
	}
	spread(t, "longest", 500, 1000, b.Longest)
	spread(t, "longest, not below Base", 900, 1000, retry.Backoff{Base: 900, Max: 1000}.Longest)
}

// spread draws often enough that both ends are met and the mean is the middle:
// the chance to miss an end is below 1e-9, the bound on the mean is ten sigma.
func spread(t *testing.T, name string, low, high time.Duration, draw func() time.Duration) {
	t.Helper()
	const draws = 20_000
	width := float64(high - low)
	lowest, highest, sum := high, low, 0.0
	for range draws {
		d := draw()
		lowest, highest, sum = min(lowest, d), max(highest, d), sum+float64(d)
	}
	require.Equal(t, low, lowest, name)
	require.Equal(t, high, highest, name)
	sigma := width / math.Sqrt(12*draws)
	require.InDelta(t, float64(low)+width/2, sum/draws, 10*sigma, name)
}

func TestMeanGrowsWithAttempts(t *testing.T) {
	mean := func(b retry.Backoff, attempt int) float64 {
		sum := 0.0
		for range 2000 {
			sum += b.Delay(attempt).Seconds()
		}
		return sum / 2000
	}
	b := retry.Backoff{}
	last := 0.0
	for attempt := 1; attempt <= 9; attempt++ {
		m := mean(b, attempt)
		require.Greater(t, m, last, "attempt %d", attempt)
		last = m
	}
	require.InDelta(t, 30, mean(b, 1000), 10, "half a minute once the upper end is one minute")
}

func TestValidate(t *testing.T) {
	tests := []struct {
		name    string
		backoff retry.Backoff
		want    []string // parts of the text; none = no fault
	}{
		{"zero value", retry.Backoff{}, nil},
		{"full", retry.Backoff{Base: 1, Max: 1, Factor: 1, Schedule: []time.Duration{0}}, nil},
		{"Max alone, below the default Base", retry.Backoff{Max: 1}, nil},
		{"negative Base", retry.Backoff{Base: -time.Second}, []string{"Base -1s is negative"}},
		{"negative Max", retry.Backoff{Max: -time.Second}, []string{"Max -1s is negative"}},
		{"Max below Base", retry.Backoff{Base: 2, Max: 1}, []string{"Max 1ns is shorter than Base 2ns"}},
		{"small Factor", retry.Backoff{Factor: 0.9}, []string{"Factor 0.9"}},
		{"negative Factor", retry.Backoff{Factor: -2}, []string{"Factor -2"}},
		{"no number", retry.Backoff{Factor: math.NaN()}, []string{"Factor NaN"}},
		{"infinite", retry.Backoff{Factor: math.Inf(1)}, []string{"Factor +Inf"}},
		{"negative step", retry.Backoff{Schedule: []time.Duration{1, -1}}, []string{"Schedule[1] -1ns is negative"}},
		{"all at once", retry.Backoff{Base: -1, Max: -1, Factor: 0.5}, []string{"Base", "Max", "Factor"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.backoff.Validate()
			if len(tt.want) == 0 {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, retry.ErrInvalidOptions)
			for _, part := range tt.want {
				require.ErrorContains(t, err, part)
			}
			joined := err.(interface{ Unwrap() []error }).Unwrap()
			require.Len(t, joined, len(tt.want))
			for _, e := range joined {
				require.ErrorIs(t, e, retry.ErrInvalidOptions)
			}
		})
	}
}

// A delay is asked for in the middle of a failure: a faulty Backoff must still
// answer something sensible.
func TestFaultyBackoffStillAnswers(t *testing.T) {
	zero := retry.Backoff{NoJitter: true}
	tests := []struct {
		name    string
		backoff retry.Backoff
		like    retry.Backoff
	}{
		{"negative Base", retry.Backoff{Base: -1}, zero},
		{"negative Max", retry.Backoff{Max: -1}, zero},
		{"small Factor", retry.Backoff{Factor: 0.5}, zero},
		{"no number", retry.Backoff{Factor: math.NaN()}, zero},
		{"infinite Factor", retry.Backoff{Factor: math.Inf(1)}, retry.Backoff{Factor: math.MaxFloat64, NoJitter: true}},
		{"Max below Base", retry.Backoff{Base: 20, Max: 10}, retry.Backoff{Base: 20, Max: 20, NoJitter: true}},
		{"negative step", retry.Backoff{Schedule: []time.Duration{-1}}, retry.Backoff{Schedule: []time.Duration{0}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Error(t, tt.backoff.Validate())
			tt.backoff.NoJitter = true
			for _, n := range manyFailures {
				require.Equal(t, tt.like.Delay(n), tt.backoff.Delay(n), "after %d failures", n)
			}
			require.Equal(t, tt.like.Longest(), tt.backoff.Longest())
		})
	}
}

func FuzzBackoff(f *testing.F) {
	f.Add(int64(0), int64(0), 0.0, 1, false)
	f.Add(int64(math.MaxInt64), int64(math.MaxInt64), 2.0, math.MaxInt, true)
	f.Add(int64(-5), int64(3), math.Inf(-1), -7, false)
	f.Fuzz(func(t *testing.T, base, longest int64, factor float64, attempt int, plain bool) {
		b := retry.Backoff{Base: time.Duration(base), Max: time.Duration(longest), Factor: factor, NoJitter: plain}
		d, l := b.Delay(attempt), b.Longest()
		if d <= 0 || l <= 0 {
			t.Fatalf("%+v: %v, %v", b, d, l)
		}
		if b.Validate() != nil || base == 0 || longest == 0 {
			return
		}
		if d < b.Base || d > b.Max || l < b.Base || l > b.Max {
			t.Fatalf("%+v: %v and %v are not within Base and Max", b, d, l)
		}
	})
}
