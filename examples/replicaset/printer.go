//go:build unix

package main

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/homeostat/homeostat/backend/file"
	"golang.org/x/term"
)

// printer writes to a person: a table that is drawn anew in its place on a
// terminal, plain lines anywhere else. Logged lines go to the error stream; on a
// terminal the newest of them stand below the table.
type printer struct {
	live atomic.Bool
	now  func() time.Time
	errs io.Writer

	mu     sync.Mutex
	out    io.Writer
	drawn  int      // lines of the table on the screen
	recent []string // below the table
	last   string   // what was drawn, to draw nothing twice
}

const recentLines = 8

func newPrinter(out, errs *os.File, plain bool) *printer {
	p := &printer{now: time.Now, out: out, errs: errs}
	p.live.Store(!plain && term.IsTerminal(int(out.Fd())))
	return p
}

// Close leaves the cursor below the table.
func (p *printer) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.live.Store(false)
	p.drawn = 0
}

// Line prints one line with the time before it.
func (p *printer) Line(format string, args ...any) {
	line := p.now().Format("15:04:05.000 ") + fmt.Sprintf(format, args...)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.live.Load() {
		p.keepLocked(line)
		return
	}
	fmt.Fprintln(p.out, line)
}

// Lines prints several, of one time.
func (p *printer) Lines(lines []string) {
	for _, line := range lines {
		p.Line("%s", line)
	}
}

// Logger logs warnings and worse, a line each.
func (p *printer) Logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(logWriter{p}, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

type logWriter struct{ p *printer }

func (w logWriter) Write(line []byte) (int, error) {
	if !w.p.live.Load() {
		return w.p.errs.Write(line) // not behind an output that does not move
	}
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	w.p.keepLocked(string(bytes.TrimSpace(line)))
	return len(line), nil
}

func (p *printer) keepLocked(line string) {
	p.recent = append(p.recent, line)
	p.recent = p.recent[max(0, len(p.recent)-recentLines):]
}

// Table draws the whole, where there is a terminal to draw it on.
func (p *printer) Table(rows []row, faults []file.Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.live.Load() {
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-24s %7s %-9s %8s %8s  %s\n", "SET / POD", "READY", "PHASE", "PID", "RESTARTS", "LAST")
	for _, r := range rows {
		if r.pod == "" {
			fmt.Fprintf(&b, "%-24s %7s\n", r.set, fmt.Sprintf("%d/%d", r.ready, r.want))
			continue
		}
		s := r.state.Status
		fmt.Fprintf(&b, "  %-22s %7s %-9s %8d %8d  %s\n", r.pod, "", phaseOf(r.state), s.PID, s.Restarts, s.Message)
	}
	for _, f := range faults {
		fmt.Fprintf(&b, "! %v\n", f)
	}
	for _, line := range p.recent {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	if b.String() == p.last {
		return
	}
	p.last = b.String()
	var screen bytes.Buffer
	if p.drawn > 0 {
		fmt.Fprintf(&screen, "\x1b[%dA", p.drawn) // up to where it began
	}
	width, height := p.size()
	lines := strings.Split(strings.TrimSuffix(p.last, "\n"), "\n")
	if len(lines) >= height {
		lines = lines[:max(1, height-1)] // what does not fit cannot be drawn over
	}
	for _, line := range lines {
		fmt.Fprintf(&screen, "%s\x1b[K\n", cut(line, width))
	}
	fmt.Fprint(&screen, "\x1b[J")
	p.drawn = len(lines)
	p.out.Write(screen.Bytes())
}

func (p *printer) size() (width, height int) {
	if f, ok := p.out.(*os.File); ok {
		if w, h, err := term.GetSize(int(f.Fd())); err == nil && w > 0 && h > 0 {
			return w, h
		}
	}
	return 80, 24
}

// cut keeps a line on one line of the screen.
func cut(line string, width int) string {
	if runes := []rune(line); len(runes) > width {
		return string(runes[:width])
	}
	return line
}
