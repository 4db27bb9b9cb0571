package stepped

import (
	"math/rand/v2"
	"strconv"
)

// chooser draws steps. It looks at nothing but its own numbers and whether a step
// could be done.
type chooser struct {
	r *rand.Rand
	w *world
}

// draw makes a script's world.
func draw(r *rand.Rand, cfg Config) script {
	s := script{history: []int{4, 10, 30, 100}[r.IntN(4)]}
	for range cfg.Clients {
		s.clients = append(s.clients, drawKind(r))
	}
	return s
}

// next does one step and gives it. The last steps are faults, while there were too
// few.
func (c chooser) next(left int) step {
	for range 200 {
		s := c.draw()
		if left <= c.w.cfg.Faults-c.w.faults {
			s = c.fault()
		}
		if c.w.play(s) {
			return s
		}
	}
	s := step{op: "compact", client: -1, key: -1}
	c.w.play(s)
	return s
}

func (c chooser) one(of ...string) string { return of[c.r.IntN(len(of))] }

func (c chooser) number(n int) string { return strconv.Itoa(c.r.IntN(n)) }

func (c chooser) draw() step {
	s := step{client: -1, key: -1}
	client := func(op, word string) step {
		return step{op: op, client: c.r.IntN(len(c.w.clients)), key: -1, word: word}
	}
	switch n := c.r.IntN(100); {
	case n < 25:
		return c.write()
	case n < 70:
		return client("go", "")
	case n < 76:
		return client("handle", "")
	case n < 82:
		return client("hint", "")
	case n < 89:
		s.op, s.word = "sleep", c.one("1", "1", "1", "1", "1", "2", "5", "5", "12", "31")
		return s
	case n < 90:
		s.op = "save"
		return s
	case n < 91:
		return client(c.one("relist", "rejoin", "restart"), "")
	}
	return c.fault()
}

func (c chooser) write() step {
	s := step{op: c.one("create", "create", "update", "update", "patch", "delete", "delete", "get"), client: -1, key: c.r.IntN(len(c.w.keys))}
	if s.op != "create" && s.op != "get" {
		s.word = c.one("now", "now", "now", "any", "any", "stale", "other", "none")
	}
	return s
}

func (c chooser) fault() step {
	s := step{client: c.r.IntN(len(c.w.clients)), key: -1}
	s.op = c.one("compact", "restore", "rewind", "fail", "fail", "stale", "stale", "short", "drop", "drop", "dup", "hold", "replay", "cut", "cut", "mute")
	switch s.op {
	case "compact":
		s.client = -1
	case "restore", "rewind":
		s.client, s.word = -1, c.number(len(c.w.saves))
	case "fail":
		s.word = c.one("boom", "boom", "expired", "future", "later", "permanent")
	case "stale", "replay":
		s.word = c.one("1", "2", "3")
	}
	return s
}
