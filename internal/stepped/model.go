package stepped

import (
	"errors"
	"fmt"

	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// maxKeys is the most keys of a history.
const maxKeys = 16

// state is what there is: for each key the number of the write that made it, 0 for
// nothing.
type state [maxKeys]int

// point is one position in the source's history.
type point struct {
	name    int // counts all points of the run
	at      reflector.Cursor
	state   state
	key     int // what changed, and to which write; 0 is a delete
	n       int
	version object.Version
	place   int // in the branch
}

func (p *point) String() string { return fmt.Sprintf("p%d", p.name) }

// entry is one state of one key.
type entry struct {
	n       int
	version object.Version // of a delete
}

// model is what the store has to be. It is written from the promises alone: a list
// of points, the oldest of which may be forgotten, and all that every key ever was.
type model struct {
	keep   int
	branch []*point // what led to now, in order
	places map[reflector.Cursor]int
	floor  int // the place of the oldest point that a watch can begin at
	life   int // how often it was restored
	points int // how many there ever were

	// named has all points that a cursor stood for: after a restore to the same
	// epoch it may stand for several.
	named    map[reflector.Cursor][]*point
	writes   []item // by number; 0 is none
	logs     [maxKeys][]entry
	ids      map[string]bool
	versions map[object.Version]bool
}

func newModel(keep int, at reflector.Cursor) *model {
	m := &model{
		keep: keep, places: map[reflector.Cursor]int{}, named: map[reflector.Cursor][]*point{},
		writes: make([]item, 1, 64), ids: map[string]bool{}, versions: map[object.Version]bool{},
	}
	for k := range m.logs {
		m.logs[k] = []entry{{}}
	}
	m.add(&point{at: at, key: -1})
	return m
}

func (m *model) now() *point { return m.branch[len(m.branch)-1] }

// add makes p the present.
func (m *model) add(p *point) {
	p.name, p.place = m.points, len(m.branch)
	m.points++
	m.branch = append(m.branch, p)
	m.places[p.at] = p.place
	m.named[p.at] = append(m.named[p.at], p)
	m.floor = max(m.floor, p.place-m.keep)
}

// wrote takes a write that the store has answered: key is now w, or gone when w is
// nil; version is the write's, at the store's position after it.
func (m *model) wrote(key int, w *item, version object.Version, at reflector.Cursor) error {
	p := &point{at: at, state: m.now().state, key: key, version: version}
	if version == "" || m.versions[version] {
		return fmt.Errorf("version %q was there before", version)
	}
	m.versions[version] = true
	if w != nil {
		m.writes = append(m.writes, *w)
		p.n = len(m.writes) - 1
	}
	p.state[key] = p.n
	m.logs[key] = append(m.logs[key], entry{p.n, version})
	m.add(p)
	return nil
}

// compact forgets all that led to now.
func (m *model) compact() { m.floor = m.now().place }

// restored sets the model back to what p was: at p itself, or as another epoch at
// the position at.
func (m *model) restored(p *point, newEpoch bool, at reflector.Cursor) {
	was := m.now().state
	m.life++
	if !newEpoch {
		clear(m.versions) // they will be given again
	}
	if !newEpoch && p.place < len(m.branch) && m.branch[p.place] == p && p.place > m.floor {
		for _, gone := range m.branch[p.place+1:] {
			delete(m.places, gone.at)
		}
		m.branch = m.branch[:p.place+1]
	} else {
		m.branch, m.floor = nil, 0
		clear(m.places)
		m.add(&point{at: at, state: p.state, key: -1})
	}
	for key, n := range p.state {
		if was[key] == n {
			continue
		}
		if m.writes[was[key]].ID != m.writes[n].ID { // another object: one of them has gone
			m.logs[key] = append(m.logs[key], entry{})
		}
		if n != 0 {
			m.logs[key] = append(m.logs[key], entry{n: n})
		}
	}
}

// next is what follows p, nil when nothing does or p is not a point of the present
// history any more.
func (m *model) next(p *point) *point {
	if !m.leads(p) || p.place == len(m.branch)-1 {
		return nil
	}
	return m.branch[p.place+1]
}

// leads says that p is a part of what led to now.
func (m *model) leads(p *point) bool { return p.place < len(m.branch) && m.branch[p.place] == p }

// resume is where a watch after the cursor begins, or the error that it must get.
func (m *model) resume(after reflector.Cursor, compare func(a, b reflector.Cursor) int) (*point, error) {
	now := m.now()
	if place, ok := m.places[after]; ok && place >= m.floor {
		return m.branch[place], nil
	}
	if compare(after, now.at) > 0 {
		return nil, reflector.ErrFutureCursor
	}
	return nil, reflector.ErrExpired
}

// page compares the part of a list that comes after the key from, and says whether
// there is more.
func (m *model) page(p reflector.Page[Thing], of *point, keys []string, from string, opts reflector.ListOptions) error {
	var want []item
	more := false
	for k, key := range keys {
		switch {
		case of.state[k] == 0 || key <= from:
		case opts.Limit > 0 && len(want) == opts.Limit:
			more = true
		default:
			want = append(want, m.writes[of.state[k]])
		}
	}
	if p.Cursor != of.at {
		return errors.New("a page of another position")
	}
	if more != (p.Next != "") {
		return fmt.Errorf("a page of %d says that there is more: %t, want %t", len(p.Items), p.Next != "", more)
	}
	if len(p.Items) != len(want) {
		return fmt.Errorf("a page of %d, want %d", len(p.Items), len(want))
	}
	for i, it := range p.Items {
		if opts.KeysOnly {
			want[i].Object = Thing{}
		}
		if it != want[i] {
			return fmt.Errorf("a page has %s, want %s", show(it), show(want[i]))
		}
	}
	return nil
}

func show(it item) string { return fmt.Sprintf("%s=#%d", it.Key, it.Object.N) }

// sight is how far an observer has followed what each key was.
type sight struct {
	pos    [maxKeys]int
	hidden bool // some writes are hidden from it
}

// mask is a state as an observer sees it.
func (s *sight) mask(n int) int {
	if s.hidden && isHidden(n) {
		return 0
	}
	return n
}

// masked is what there is as an observer sees it.
func (s *sight) masked(of state) state {
	for k, n := range of {
		of[k] = s.mask(n)
	}
	return of
}

// isHidden says which writes the kind "filter" does not see.
func isHidden(n int) bool { return n%4 == 0 }

// see looks at the state n of a key: it must be the last one seen, or one that came
// after it. (Of several the first is taken, which leaves most to come.) With lied,
// the source has told nonsense of this key: any state of it will do.
func (s *sight) see(m *model, key, n int, lied bool) error {
	log := m.logs[key]
	if s.mask(log[s.pos[key]].n) == n {
		return nil
	}
	for i := s.pos[key] + 1; i < len(log); i++ {
		if s.mask(log[i].n) == n {
			s.pos[key] = i
			return nil
		}
	}
	if lied {
		for i, e := range log {
			if s.mask(e.n) == n || n == 0 {
				s.pos[key] = i
				return nil
			}
		}
	}
	return fmt.Errorf("%s, which it was not after %s", state1(n), state1(log[s.pos[key]].n))
}

func state1(n int) string {
	if n == 0 {
		return "absent"
	}
	return fmt.Sprintf("#%d", n)
}
