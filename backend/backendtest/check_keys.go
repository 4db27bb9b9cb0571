package backendtest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/homeostat/homeostat/reflector"
)

func keyChecks[T any]() []check[T] {
	return []check[T]{
		{Check{"object/keys", []string{"reflector 9"}, "keys are told apart to the last byte: case, blanks, separators, escapes and length count, and no key is taken for one that it begins with"}, objectKeys[T]},
	}
}

// oddKeys are those that get mixed up: pairs that differ in little, and what a path, a
// URL or a query gives a meaning of its own.
func oddKeys() []string {
	long := strings.Repeat("long-", 40)
	return []string{
		"key-1", "Key-1", "key-10", "key-1/sub", "a/b", "a%2Fb", "a", "b", "a b", "a+b", "a%20b",
		"ключ-ü-鍵", "a_b", "a.b", "%", "*", long, long + "x",
	}
}

func objectKeys[T any](k *kit[T]) {
	st := k.open()
	k.need("Harness.Write", st.fx.Write != nil || st.backend() != nil)
	keys := oddKeys()
	if !k.run.anyKeys {
		keys = nil
		for _, n := range []int{0, 1, 2, 10, 11, 100, 1000} {
			keys = append(keys, k.h.Key(n))
		}
	}
	c := st.client()
	c.exact = false
	var held []string
	for _, key := range keys {
		if st.writeOdd(k.put(key)) {
			held = append(held, key)
		}
	}
	st.tellsApart(c, held, "was written")
	for i, key := range held {
		if i%3 == 0 && st.writeOdd(k.gone(key)) || i%3 == 1 && st.writeOdd(k.put(key)) {
			st.tellsApart(c, held, fmt.Sprintf("%q was written again, or deleted", key))
		}
	}
}

// writeOdd makes a change by the adapter, if it can. A store may refuse a key that
// it cannot hold; false when it did.
func (st *store[T]) writeOdd(c Change[T]) bool {
	k := st.k
	write := func(ctx context.Context) (struct{}, error) { return struct{}{}, change(ctx, st.backend(), c) }
	err := errors.ErrUnsupported
	if st.backend() != nil {
		_, err = call(k.ctx, "a write", k.h.Wait, k.h.Wait, write)
	}
	if errors.Is(err, errors.ErrUnsupported) {
		err = st.tryWrite(c)
	}
	if errors.Is(err, errStuck) || errors.Is(err, errPanic) || errors.Is(err, errNeither) {
		k.must(err)
	}
	if err != nil {
		return false
	}
	st.hist.add(c)
	return true
}

// tellsApart wants list, watch and Get to show under each key what was written there.
func (st *store[T]) tellsApart(c *client[T], keys []string, when string) {
	k := st.k
	st.settled()
	k.must(c.follow("what was written under odd keys", c.current))
	if st.powers.Get == nil {
		return
	}
	for _, key := range keys {
		want, there := st.hist.now()[key]
		k.must(k.ifStale(st, func() error {
			item, err := st.get(key)
			switch {
			case !there && !errors.Is(err, reflector.ErrNotFound):
				return fmt.Errorf("when %s: a Get of %q, which is not there, gives %q, error: %v", when, key, item.Key, err)
			case there && (err != nil || item.Key != key || !k.h.Equal(item.Object, want)):
				return fmt.Errorf("when %s: a Get of %q gives %q, or another object; error: %v", when, key, item.Key, err)
			}
			return nil
		}))
	}
}
