package stepped

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// step is one thing that happens. Its text is "go c1", "update k3 stale",
// "sleep 5".
type step struct {
	op     string
	client int    // -1: none
	key    int    // -1: none
	word   string // how; may be empty
}

func (s step) String() string {
	parts := []string{s.op}
	if s.client >= 0 {
		parts = append(parts, "c"+strconv.Itoa(s.client))
	}
	if s.key >= 0 {
		parts = append(parts, "k"+strconv.Itoa(s.key))
	}
	if s.word != "" {
		parts = append(parts, s.word)
	}
	return strings.Join(parts, " ")
}

// number is a word that is one; 0 when it is not.
func (s step) number() int {
	n, _ := strconv.Atoi(s.word)
	return n
}

func parseStep(text string) (step, error) {
	s := step{client: -1, key: -1}
	for i, part := range strings.Fields(text) {
		n, err := strconv.Atoi(part[1:])
		switch {
		case i == 0:
			s.op = part
		case part[0] == 'c' && err == nil:
			s.client = n
		case part[0] == 'k' && err == nil && n < maxKeys:
			s.key = n
		case s.word == "":
			s.word = part
		default:
			return s, fmt.Errorf("%q: what is %q?", text, part)
		}
	}
	if !slices.Contains(ops, s.op) {
		return s, fmt.Errorf("%q: no step is called %q", text, s.op)
	}
	return s, nil
}

// script is a history as text: what the world is, and the steps.
type script struct {
	history int // changes that the store keeps
	clients []kind
	steps   []step
}

// String is what Replay takes.
func (s script) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "history %d\n", s.history)
	for _, k := range s.clients {
		fmt.Fprintf(&b, "client %s\n", k)
	}
	for _, st := range s.steps {
		fmt.Fprintln(&b, st)
	}
	return b.String()
}

func parse(text string) (script, error) {
	s := script{history: 100}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "//")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		var err error
		if rest, ok := strings.CutPrefix(line, "history "); ok {
			s.history, err = strconv.Atoi(rest)
		} else if rest, ok := strings.CutPrefix(line, "client "); ok {
			var k kind
			k, err = parseKind(rest)
			s.clients = append(s.clients, k)
		} else {
			var st step
			st, err = parseStep(line)
			s.steps = append(s.steps, st)
		}
		if err != nil {
			return s, fmt.Errorf("stepped: %w", err)
		}
	}
	return s, nil
}
