//go:build unix

package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/homeostat/homeostat/backend/file"
	"github.com/homeostat/homeostat/examples/internal/workload"
	"github.com/stretchr/testify/require"
)

func newTestPrinter(live bool) (p *printer, out, errs *bytes.Buffer) {
	out, errs = &bytes.Buffer{}, &bytes.Buffer{}
	noon := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	p = &printer{now: func() time.Time { return noon }, out: out, errs: errs}
	p.live.Store(live)
	return p, out, errs
}

func someRows() []row {
	pod := &workload.Pod{Status: workload.PodStatus{Phase: workload.Running, PID: 4711, Restarts: 2, Message: "killed by SIGTERM"}}
	return []row{{set: "web", want: 2, ready: 1}, {pod: "web-a", state: pod}, {pod: "web-b", state: &workload.Pod{}}}
}

func TestPlainIsALineForEachTransition(t *testing.T) {
	p, out, errs := newTestPrinter(false)
	p.Table(someRows(), nil)
	p.Line("pod %s Running", "a")
	p.Logger().Warn("careful", "file", "a.yaml")
	p.Logger().Info("chatter")
	require.Equal(t, "12:00:00.000 pod a Running\n", out.String())
	require.Contains(t, errs.String(), "msg=careful file=a.yaml")
	require.NotContains(t, errs.String(), "chatter")
}

func TestTheTableIsDrawnInItsPlace(t *testing.T) {
	p, out, errs := newTestPrinter(true)
	faults := []file.Fault{{File: "a.yaml", Line: 7, Err: errors.New("boom")}}
	p.Table(someRows(), faults)
	first := out.String()
	for _, text := range []string{"web", "1/2", "Running", "4711", "killed by SIGTERM", "Pending", "! a.yaml:7: boom"} {
		require.Contains(t, first, text)
	}
	require.NotContains(t, first, "\x1b[5A", "nothing was drawn yet")
	require.Equal(t, 5, strings.Count(first, "\n"))

	p.Table(someRows(), faults)
	require.Equal(t, first, out.String(), "nothing new, nothing drawn")

	for range 20 {
		p.Line("a line")
	}
	p.Logger().Warn(strings.Repeat("wide", 50))
	require.Empty(t, errs.String(), "the error stream is the same screen")
	out.Reset()
	p.Table(someRows(), nil)
	require.True(t, strings.HasPrefix(out.String(), "\x1b[5A"), "from where the last one began")
	require.True(t, strings.HasSuffix(out.String(), "\x1b[J"), "and what was below is gone")
	require.Equal(t, recentLines-1, strings.Count(out.String(), "a line"))
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, len([]rune(strings.TrimSuffix(line, "\x1b[K\n"))), 80+len("\x1b[5A"), "a line that wraps would break the place")
	}

	p.Close()
	out.Reset()
	p.Line("after")
	require.Equal(t, "12:00:00.000 after\n", out.String())
}

func TestATableHigherThanTheScreenIsCut(t *testing.T) {
	p, out, _ := newTestPrinter(true)
	var rows []row
	for range 100 {
		rows = append(rows, row{set: "s"})
	}
	p.Table(rows, nil)
	require.Equal(t, 23, strings.Count(out.String(), "\n"))
}
