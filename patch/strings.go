package patch

import (
	"bytes"
	"unicode/utf8"
)

// unquote gives what a JSON string of valid text stands for. Without escapes it
// is a part of quoted, not a copy.
//
// Half a surrogate pair, which JSON can write and UTF-8 can't, becomes the three
// bytes that UTF-8 would have for it. Raw text never holds these (it is checked
// to be UTF-8), so different strings stay different and appendQuoted can give
// them back.
func unquote(quoted []byte) []byte {
	in := quoted[1 : len(quoted)-1]
	esc := bytes.IndexByte(in, '\\')
	if esc < 0 {
		return in
	}
	out := append(make([]byte, 0, len(in)), in[:esc]...)
	for i := esc; i < len(in); {
		if in[i] != '\\' {
			out = append(out, in[i])
			i++
			continue
		}
		switch in[i+1] {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r := hex4(in[i+2:])
			i += 6
			if isHigh(r) && i+6 <= len(in) && in[i] == '\\' && in[i+1] == 'u' {
				if low := hex4(in[i+2:]); isLow(low) {
					r = 0x10000 + (r-0xD800)<<10 + (low - 0xDC00)
					i += 6
				}
			}
			if isHigh(r) || isLow(r) {
				out = append(out, 0xED, 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
			} else {
				out = utf8.AppendRune(out, r)
			}
			continue
		default: // a quote, a slash or a backslash stands for itself
			out = append(out, in[i+1])
		}
		i += 2
	}
	return out
}

func isHigh(r rune) bool { return 0xD800 <= r && r < 0xDC00 }
func isLow(r rune) bool  { return 0xDC00 <= r && r < 0xE000 }

func hex4(in []byte) rune {
	var r rune
	for _, b := range in[:4] {
		switch {
		case b <= '9':
			b -= '0'
		case b >= 'a':
			b -= 'a' - 10
		default:
			b -= 'A' - 10
		}
		r = r<<4 | rune(b)
	}
	return r
}

const hexDigits = "0123456789abcdef"

// appendQuoted is the inverse of unquote: s as a JSON string.
func appendQuoted(out []byte, s string) []byte {
	out = append(out, '"')
	for i := 0; i < len(s); i++ {
		switch b := s[i]; {
		case b == '"' || b == '\\':
			out = append(out, '\\', b)
		case b < 0x20:
			out = append(out, '\\', 'u', '0', '0', hexDigits[b>>4], hexDigits[b&0xF])
		case b == 0xED && i+2 < len(s) && s[i+1] >= 0xA0:
			// Half a surrogate pair, see unquote.
			out = append(out, '\\', 'u', 'd',
				hexDigits[s[i+1]>>2&0xF], hexDigits[s[i+1]&3<<2|s[i+2]>>4&3], hexDigits[s[i+2]&0xF])
			i += 2
		default:
			out = append(out, b)
		}
	}
	return append(out, '"')
}
