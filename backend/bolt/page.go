package bolt

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/homeostat/homeostat/reflector"
	"go.etcd.io/bbolt"
)

// part is a piece of the state at a revision, sorted by key.
type part struct {
	records []record // copies
	more    bool     // there are others after them
}

// part gives the objects after the key last, as they were at revision at: the
// objects of now, but those that changed since as the history has them from before
// their first change. limit 0 is all.
func (st *state) part(at int64, last string, limit int, keysOnly bool) (part, error) {
	var p part
	then, err := st.undone(at, last)
	if err != nil {
		return p, err
	}
	room := func() bool {
		p.more = limit > 0 && len(p.records) == limit
		return !p.more
	}
	changed := slices.Sorted(maps.Keys(then))
	// upTo adds what was there of the changed keys up to key; "" is all of them.
	upTo := func(key string) bool {
		for ; len(changed) > 0 && (key == "" || changed[0] <= key); changed = changed[1:] {
			if c := then[changed[0]]; !c.fresh {
				if !room() {
					return false
				}
				p.records = append(p.records, c.before.copied(keysOnly))
			}
		}
		return true
	}
	c := st.objects.Cursor()
	for k, v := after(c, last); k != nil; k, v = c.Next() {
		key := string(k)
		_, other := then[key]
		if !upTo(key) {
			return p, nil
		}
		if other {
			continue
		}
		if !room() {
			return p, nil
		}
		r, err := readRecord(key, v)
		if err != nil {
			return p, err
		}
		p.records = append(p.records, r.copied(keysOnly))
	}
	upTo("")
	return p, nil
}

func after(c *bbolt.Cursor, last string) (k, v []byte) {
	if last == "" {
		return c.First()
	}
	return c.Seek([]byte(last + "\x00"))
}

// undone is, for each key after last that changed after revision at, its first
// change since then.
func (st *state) undone(at int64, last string) (map[string]change, error) {
	if at < st.forgotten {
		return nil, st.expired(at)
	}
	if at == st.rev {
		return nil, nil
	}
	first := map[string]change{}
	c := st.history.Cursor()
	for k, v := c.Seek(revKey(at + 1)); k != nil; k, v = c.Next() {
		rev, _ := readRev(k)
		ch, err := readChange(rev, v)
		if err != nil {
			return nil, err
		}
		if key := ch.key(); key > last {
			if _, ok := first[key]; !ok {
				first[key] = ch
			}
		}
	}
	return first, nil
}

func (st *state) expired(rev int64) error {
	return fmt.Errorf("after revision %d, history begins at %d: %w", rev, st.forgotten+1, reflector.ErrExpired)
}

// token names the place after a key in one state. Its parts but the last have no
// slash in them.
func token(epoch string, rev int64, last string) reflector.PageToken {
	return reflector.PageToken(fmt.Sprintf("%s/%d/%s", epoch, rev, last))
}

func readToken(t reflector.PageToken) (epoch string, rev int64, last string, ok bool) {
	parts := strings.SplitN(string(t), "/", 3)
	if len(parts) < 3 || parts[2] == "" {
		return "", 0, "", false
	}
	rev, err := strconv.ParseInt(parts[1], 10, 64)
	return parts[0], rev, parts[2], err == nil && rev >= 0
}
