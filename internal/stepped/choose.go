package stepped

import (
	"maps"
	"math/rand/v2"
	"slices"
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
	for {
		draw := c.sort()
		if left <= c.w.cfg.Faults-c.w.faults {
			draw = c.fault
		}
		for range 12 {
			if s := draw(); c.w.play(s) {
				return s
			}
		}
	}
}

// sort draws what sort of step it will be.
func (c chooser) sort() func() step {
	switch n := c.r.IntN(100); {
	case n < 26:
		return c.write
	case n < 78:
		return c.flow
	case n < 88:
		return c.fault
	case n < 96:
		return c.pause
	}
	return c.other
}

func (c chooser) one(of ...string) string { return of[c.r.IntN(len(of))] }

func (c chooser) client(op, word string) step {
	return step{op: op, client: c.r.IntN(len(c.w.clients)), key: -1, word: word}
}

// write draws a write, mostly one that can be done.
func (c chooser) write() step {
	s := step{client: -1, key: c.r.IntN(len(c.w.keys))}
	switch there := c.w.model.now().state[s.key] != 0; {
	case c.r.IntN(10) == 0:
		s.op = c.one("create", "update", "patch", "delete", "get")
	case there:
		s.op = c.one("update", "update", "patch", "delete")
	default:
		s.op = "create"
	}
	if s.op != "create" && s.op != "get" {
		s.word = c.one("now", "now", "now", "now", "any", "any", "any", "stale", "other", "none")
	}
	return s
}

// flow lets something go on.
func (c chooser) flow() step {
	return c.client(c.one("go", "go", "go", "go", "go", "handle", "hint"), "")
}

func (c chooser) pause() step {
	return step{op: "sleep", client: -1, key: -1, word: c.one("1", "1", "1", "1", "1", "1", "1", "2", "2", "2", "5", "5", "12", "31")}
}

func (c chooser) other() step {
	switch c.r.IntN(4) {
	case 0:
		return step{op: "save", client: -1, key: -1}
	case 1:
		return c.client("wait", c.one("", "", "unknown"))
	}
	return c.client(c.one("relist", "rejoin", "restart"), "")
}

// faultOdds has the faults as often as they are to be tried: most can be done only
// now and then.
var faultOdds = weigh(map[string]int{
	"compact": 2, "restore": 1, "rewind": 1, "fail": 6,
	"stale": 12, "short": 4, "drop": 9, "dup": 6, "hold": 9, "replay": 12, "cut": 6, "mute": 3,
})

// weigh has each word as often as its weight says.
func weigh(odds map[string]int) []string {
	var words []string
	for _, word := range slices.Sorted(maps.Keys(odds)) {
		for range odds[word] {
			words = append(words, word)
		}
	}
	return words
}

func (c chooser) fault() step {
	s := c.client(c.one(faultOdds...), "")
	switch s.op {
	case "compact":
		s.client = -1
	case "restore", "rewind":
		s.client, s.word = -1, strconv.Itoa(c.r.IntN(len(c.w.saves)))
	case "fail":
		s.word = c.one("boom", "boom", "expired", "future", "later", "permanent")
	case "stale", "replay":
		s.word = c.one("1", "2", "3")
	}
	return s
}
