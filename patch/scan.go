package patch

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// text is one JSON text that was found valid: white space, a value, white space.
type text struct {
	before, value, after []byte
	// depth is how many lists and objects lie within each other.
	depth int
}

// check reads the whole of data by the rules of RFC 8259. Everything else in
// this package works on text that went through here, and relies on it.
func check(data []byte) (text, error) {
	if !utf8.Valid(data) {
		return text{}, &SyntaxError{Offset: firstBadRune(data), Reason: "not UTF-8"}
	}
	c := checker{data: data}
	start := c.space(0)
	end, err := c.value(start, 0)
	if err != nil {
		return text{}, err
	}
	if last := c.space(end); last < len(data) {
		return text{}, c.unexpected(last, "the end")
	}
	return text{before: data[:start], value: data[start:end], after: data[end:], depth: c.deepest}, nil
}

// firstBadRune finds what makes data no UTF-8.
func firstBadRune(data []byte) int {
	for i := 0; ; {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size <= 1 {
			return i
		}
		i += size
	}
}

type checker struct {
	data    []byte
	deepest int
}

func (c *checker) unexpected(at int, want string) error {
	if at >= len(c.data) {
		return &SyntaxError{Offset: len(c.data), Reason: "the text ends where " + want + " should be"}
	}
	r, _ := utf8.DecodeRune(c.data[at:])
	return &SyntaxError{Offset: at, Reason: fmt.Sprintf("%q where %s should be", r, want)}
}

func (c *checker) space(i int) int {
	for i < len(c.data) && isSpace(c.data[i]) {
		i++
	}
	return i
}

func isSpace(b byte) bool { return b == ' ' || b == '\n' || b == '\t' || b == '\r' }

// value reads the value that begins at i, within depth others, and gives the
// index after it. It recurses: MaxDepth bounds the stack.
func (c *checker) value(i, depth int) (int, error) {
	if i >= len(c.data) {
		return 0, c.unexpected(i, "a value")
	}
	switch b := c.data[i]; {
	case b == '"':
		return c.str(i)
	case b == '{' || b == '[':
		depth++
		if depth > c.deepest {
			if depth > MaxDepth {
				return 0, errTooDeep()
			}
			c.deepest = depth
		}
		if b == '{' {
			return c.object(i, depth)
		}
		return c.list(i, depth)
	case b == '-' || isDigit(b):
		return c.number(i)
	case b == 't':
		return c.literal(i, "true")
	case b == 'f':
		return c.literal(i, "false")
	case b == 'n':
		return c.literal(i, "null")
	}
	return 0, c.unexpected(i, "a value")
}

func (c *checker) object(i, depth int) (int, error) {
	i = c.space(i + 1)
	if i < len(c.data) && c.data[i] == '}' {
		return i + 1, nil
	}
	for {
		if i >= len(c.data) || c.data[i] != '"' {
			return 0, c.unexpected(i, "a member's name")
		}
		var err error
		if i, err = c.str(i); err != nil {
			return 0, err
		}
		i = c.space(i)
		if i >= len(c.data) || c.data[i] != ':' {
			return 0, c.unexpected(i, "a colon")
		}
		if i, err = c.value(c.space(i+1), depth); err != nil {
			return 0, err
		}
		i = c.space(i)
		if i >= len(c.data) {
			return 0, c.unexpected(i, "a comma or }")
		}
		switch c.data[i] {
		case ',':
			i = c.space(i + 1)
		case '}':
			return i + 1, nil
		default:
			return 0, c.unexpected(i, "a comma or }")
		}
	}
}

func (c *checker) list(i, depth int) (int, error) {
	i = c.space(i + 1)
	if i < len(c.data) && c.data[i] == ']' {
		return i + 1, nil
	}
	for {
		var err error
		if i, err = c.value(i, depth); err != nil {
			return 0, err
		}
		i = c.space(i)
		if i >= len(c.data) {
			return 0, c.unexpected(i, "a comma or ]")
		}
		switch c.data[i] {
		case ',':
			i = c.space(i + 1)
		case ']':
			return i + 1, nil
		default:
			return 0, c.unexpected(i, "a comma or ]")
		}
	}
}

func (c *checker) literal(i int, word string) (int, error) {
	for j := range len(word) {
		if i+j >= len(c.data) || c.data[i+j] != word[j] {
			return 0, c.unexpected(i+j, word)
		}
	}
	return i + len(word), nil
}

func (c *checker) number(i int) (int, error) {
	if c.data[i] == '-' {
		i++
	}
	// No leading zeros: "01" is a zero followed by something unexpected.
	if i < len(c.data) && c.data[i] == '0' {
		i++
	} else {
		var err error
		if i, err = c.digits(i); err != nil {
			return 0, err
		}
	}
	if i < len(c.data) && c.data[i] == '.' {
		var err error
		if i, err = c.digits(i + 1); err != nil {
			return 0, err
		}
	}
	if i < len(c.data) && (c.data[i] == 'e' || c.data[i] == 'E') {
		i++
		if i < len(c.data) && (c.data[i] == '+' || c.data[i] == '-') {
			i++
		}
		return c.digits(i)
	}
	return i, nil
}

// digits reads one or more.
func (c *checker) digits(i int) (int, error) {
	if i >= len(c.data) || !isDigit(c.data[i]) {
		return 0, c.unexpected(i, "a digit")
	}
	for i < len(c.data) && isDigit(c.data[i]) {
		i++
	}
	return i, nil
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

func (c *checker) str(i int) (int, error) {
	for i++; i < len(c.data); i++ {
		switch b := c.data[i]; {
		case b == '"':
			return i + 1, nil
		case b < 0x20:
			return 0, c.unexpected(i, "a control character's escape")
		case b == '\\':
			i++
			if i >= len(c.data) {
				return 0, c.unexpected(i, "an escape")
			}
			switch c.data[i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				for range 4 {
					i++
					if i >= len(c.data) || !isHex(c.data[i]) {
						return 0, c.unexpected(i, "a hexadecimal digit")
					}
				}
			default:
				return 0, c.unexpected(i, "an escape")
			}
		}
	}
	return 0, c.unexpected(i, "a closing quote")
}

func isHex(b byte) bool {
	return isDigit(b) || 'a' <= b && b <= 'f' || 'A' <= b && b <= 'F'
}

// skipValue gives the index after the value that begins at i. The text is known
// to be valid.
func skipValue(data []byte, i int) int {
	switch data[i] {
	case '"':
		return skipString(data, i)
	case '{', '[':
		for open := 0; ; {
			switch data[i] {
			case '"':
				i = skipString(data, i)
				continue
			case '{', '[':
				open++
			case '}', ']':
				open--
				if open == 0 {
					return i + 1
				}
			}
			i++
		}
	}
	for i < len(data) && !isSpace(data[i]) && data[i] != ',' && data[i] != ']' && data[i] != '}' {
		i++
	}
	return i
}

// skipString gives the index after the string that begins at i in valid text.
func skipString(data []byte, i int) int {
	for i++; ; i++ {
		i += bytes.IndexByte(data[i:], '"')
		// A quote ends the string unless an odd number of backslashes precedes it.
		n := 0
		for data[i-1-n] == '\\' {
			n++
		}
		if n%2 == 0 {
			return i + 1
		}
	}
}

// skipSpace gives the index of the first byte from i on that is no white space.
// There is one: only the inside of objects and lists is read like this.
func skipSpace(data []byte, i int) int {
	for isSpace(data[i]) {
		i++
	}
	return i
}

// depthOf counts the lists and objects within each other in valid text.
func depthOf(data []byte) int {
	open, deepest := 0, 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i = skipString(data, i) - 1
		case '{', '[':
			open++
			deepest = max(deepest, open)
		case '}', ']':
			open--
		}
	}
	return deepest
}
