package patch

import (
	"errors"
	"strconv"
	"strings"
)

// pointer is a JSON pointer (RFC 6901) as the reference tokens that it is made
// of, their escapes undone. Only the document says whether a token is a name or
// an index.
type pointer []string

var (
	errNoSlash = errors.New("a path is empty or begins with /")
	errEscape  = errors.New("~ goes before 0 or 1")
)

func parsePointer(s string) (pointer, error) {
	if s == "" {
		return nil, nil
	}
	if s[0] != '/' {
		return nil, errNoSlash
	}
	tokens := strings.Split(s[1:], "/")
	for i, token := range tokens {
		if !strings.Contains(token, "~") {
			continue
		}
		for j := 0; j < len(token); j++ {
			if token[j] == '~' && (j+1 == len(token) || token[j+1] != '0' && token[j+1] != '1') {
				return nil, errEscape
			}
		}
		// ~1 first: in ~01 the 1 belongs to the name.
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
	}
	return tokens, nil
}

// within says that p leads to something inside of what other leads to.
func (p pointer) within(other pointer) bool {
	if len(p) <= len(other) {
		return false
	}
	for i := range other {
		if p[i] != other[i] {
			return false
		}
	}
	return true
}

// endOfList is the token for the place after a list's last element.
const endOfList = "-"

// parseIndex reads a token as an index. An index that no list can have is one
// beyond the end, so ok only says that it is well formed.
func parseIndex(token string) (i int, ok bool) {
	if token == "" || len(token) > 1 && token[0] == '0' {
		return 0, false
	}
	for j := range len(token) {
		if !isDigit(token[j]) {
			return 0, false
		}
	}
	i, _ = strconv.Atoi(token) // the largest int there is, if it overflows
	return i, true
}
