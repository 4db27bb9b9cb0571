package informer

import (
	"github.com/homeostat/homeostat/indexer"
	"github.com/homeostat/homeostat/reflector"
)

// claims are the puts of one step that ask for a value which another key has in the
// cache now, by that key. It has the value to itself when it is left out of the step
// and so stays as it is: then they can't be let in either. To find that out by one
// write for each link would take n writes for a chain of n.
type claims map[string][]*indexer.TakenError

// claimsOf are those of the plan's puts. Keys that lose what they hold, whether or
// not their put is left out, have none.
func claimsOf[T any](cache *indexer.Indexer[T], p *plan[T], events []reflector.Event[T]) claims {
	gone := make(map[string]bool)
	for n := range events {
		ev := &events[n]
		cur, held := cache.Item(ev.Key)
		if held && (ev.Op == reflector.OpDelete || recreated(cur, ev.Item)) {
			gone[ev.Key] = true
		}
	}
	c := make(claims)
	for n := range p.finals {
		f := &p.finals[n]
		if !f.live {
			continue
		}
		for _, t := range cache.Taken(f.item) {
			if !gone[t.Holder] {
				c[t.Holder] = append(c[t.Holder], t)
			}
		}
	}
	return c
}

// spread refuses what follows from refusing keys, which are in refuse already.
func (c claims) spread(refuse map[string]error, keys []string) {
	for len(keys) > 0 {
		key := keys[len(keys)-1]
		keys = keys[:len(keys)-1]
		for _, t := range c[key] {
			if _, known := refuse[t.Key]; !known {
				refuse[t.Key] = t
				keys = append(keys, t.Key)
			}
		}
	}
}
