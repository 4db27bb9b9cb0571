package workqueue

import "slices"

// bits are what is true of an entry. Not every set of them can be:
//
//	queued, dirty   no planned run (due is 0): the coming one covers it
//	queued          neither working, nor dirty, nor parked
//	dirty           working
//	parked          neither queued nor working
type bits uint8

const (
	queued  bits = 1 << iota // in the fifo
	working                  // between Get and Done
	dirty                    // in work, and wanted again afterwards
	parked                   // given up on
	again                    // wanted again at once although it had failed
)

// entry is everything that is known of one key. A key that is not queued, not in
// work, not planned and not parked has none. It fits into 64 bytes for a string
// key: there may be a million that only wait.
type entry[K comparable] struct {
	key        K
	prev, next *entry[K] // in the fifo; next also in the free list
	due        int64     // the planned run, by the queue's clock; 0 is none
	more       *more     // nil for most
	since      uint32    // in this state, in ticks; see clock.go
	place      int32     // in the heap, from 1; 0 is not in it
	seq        uint32    // tells what comes first of equal times in the heap
	is         bits
}

// more is what only keys have that failed, are to be reminded, or were added with
// a reason.
type more struct {
	attempts      int
	failing       int64 // when the first failure of the row was
	err           error // the last outcome that was not nil
	reminders     []int64
	asked, served []reason // for the coming run; of the run in work
}

type reason struct {
	text  string
	count int
}

// Both lists must not grow with the number of calls.
const (
	maxReasons   = 32
	maxReminders = 16

	otherReasons = "(other)"
)

// extra makes room for the rare.
func (e *entry[K]) extra() *more {
	if e.more == nil {
		e.more = &more{}
	}
	return e.more
}

func (m *more) clear() {
	*m = more{reminders: m.reminders[:0], asked: clearReasons(m.asked), served: clearReasons(m.served)}
}

func clearReasons(r []reason) []reason {
	clear(r) // lets go of the texts
	return r[:0]
}

// at is when the clock has to look at the entry; 0 is never.
func (e *entry[K]) at() int64 {
	if e.more != nil && len(e.more.reminders) > 0 {
		if first := e.more.reminders[0]; e.due == 0 || first < e.due {
			return first
		}
	}
	return e.due
}

// remind adds a reminder, keeping them in order. When there are too many, the two
// that are nearest to each other become one: a run at the later meets both.
func (m *more) remind(at int64) {
	i, found := slices.BinarySearch(m.reminders, at)
	if found {
		return
	}
	m.reminders = slices.Insert(m.reminders, i, at)
	if len(m.reminders) <= maxReminders {
		return
	}
	nearest := 0
	for i := 1; i < len(m.reminders)-1; i++ {
		if m.reminders[i+1]-m.reminders[i] < m.reminders[nearest+1]-m.reminders[nearest] {
			nearest = i
		}
	}
	m.reminders = slices.Delete(m.reminders, nearest, nearest+1)
}

// because counts a reason. What comes when there are too many is counted as one.
func because(list []reason, text string, count int) []reason {
	for i := range list {
		if list[i].text == text {
			list[i].count += count
			return list
		}
	}
	if len(list) >= maxReasons-1 && text != otherReasons {
		return because(list, otherReasons, count)
	}
	return append(list, reason{text, count})
}

// keepReasons gives the reasons of a run that did not do it to the next one.
func (m *more) keepReasons() {
	if len(m.asked) == 0 {
		m.asked, m.served = m.served, m.asked
		return
	}
	for _, r := range m.served {
		m.asked = because(m.asked, r.text, r.count)
	}
	m.served = clearReasons(m.served)
}

// fifo is the keys that are due, a list through their entries: a key that is
// cancelled leaves from the middle.
type fifo[K comparable] struct {
	head, tail *entry[K]
	n          int
}

func (f *fifo[K]) push(e *entry[K]) {
	e.prev, e.next = f.tail, nil
	if f.tail == nil {
		f.head = e
	} else {
		f.tail.next = e
	}
	f.tail = e
	f.n++
}

func (f *fifo[K]) remove(e *entry[K]) {
	if e.prev == nil {
		f.head = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		f.tail = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.prev, e.next = nil, nil
	f.n--
}
