package patch

import (
	"strconv"
	"strings"
)

// Path is a place in a JSON document: the steps from its root. The empty path is
// the whole document.
type Path []Step

// Step is one step down: into an object by Member or, with InList, into a list
// by Index.
type Step struct {
	// Member is the name of an object's member. It may be empty.
	Member string
	// Index is an element's place in its list, counted from 0. Only with InList.
	Index int
	// InList says which of the two it is.
	InList bool
}

// String gives the path as a JSON pointer (RFC 6901): "/spec/containers/0", and
// "" for the whole document.
func (p Path) String() string {
	var b []byte
	for _, s := range p {
		b = s.appendTo(b)
	}
	return string(b)
}

// String gives the step as a path of its own: "/name" or "/0".
func (s Step) String() string { return string(s.appendTo(nil)) }

func (s Step) appendTo(b []byte) []byte {
	b = append(b, '/')
	if s.InList {
		return strconv.AppendInt(b, int64(s.Index), 10)
	}
	return appendToken(b, s.Member)
}

// appendToken escapes one reference token. "~" goes first by construction: each
// byte is looked at once.
func appendToken(b []byte, token string) []byte {
	if !strings.ContainsAny(token, "~/") {
		return append(b, token...)
	}
	for i := 0; i < len(token); i++ {
		switch token[i] {
		case '~':
			b = append(b, "~0"...)
		case '/':
			b = append(b, "~1"...)
		default:
			b = append(b, token[i])
		}
	}
	return b
}
