package memory

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/homeostat/homeostat/reflector"
)

// token names the place after the key last in one state. It has all that the next
// page needs: the store remembers nothing for a list that nobody goes on with.
func token(epoch string, life, rev int64, last string) reflector.PageToken {
	return reflector.PageToken(fmt.Sprintf("%s/%d/%d/%s", epoch, life, rev, last))
}

// next is the page that t names.
func (s *Store[T]) next(t reflector.PageToken, notBefore int64, opts reflector.ListOptions) (reflector.Page[T], error) {
	parts := strings.SplitN(string(t), "/", 4) // the last, a key, may have slashes in it
	if len(parts) < 4 {
		return reflector.Page[T]{}, fmt.Errorf("no page of this store: %w", reflector.ErrExpired)
	}
	rev, life, err := s.position(reflector.Cursor(parts[0] + "." + parts[2]))
	switch {
	case err != nil || parts[1] != strconv.FormatInt(life, 10):
		return reflector.Page[T]{}, fmt.Errorf("a page of another epoch, or of before the store was restored: %w", reflector.ErrExpired)
	case rev < notBefore:
		return reflector.Page[T]{}, fmt.Errorf("a page of revision %d, asked for not before %d: %w", rev, notBefore, reflector.ErrExpired)
	}
	snap, err := s.state(rev, life)
	if err != nil {
		return reflector.Page[T]{}, err
	}
	return snap.page(parts[3], opts), nil
}
