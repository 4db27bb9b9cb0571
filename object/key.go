package object

import "strings"

// Key joins parts into one key with "/" between them, escaped so that [Split]
// gives the same parts back: "/" inside a part becomes "%2F", "%" becomes "%25".
// Keys of different parts are different, with one exception: no part at all and
// one empty part both give "".
func Key(parts ...string) string {
	n := len(parts) - 1
	escape := false
	for _, p := range parts {
		n += len(p)
		escape = escape || strings.ContainsAny(p, "%/")
	}
	if !escape {
		return strings.Join(parts, "/")
	}
	var b strings.Builder
	b.Grow(n + 8)
	for i, p := range parts {
		if i > 0 {
			b.WriteByte('/')
		}
		for j := 0; j < len(p); j++ {
			switch p[j] {
			case '%':
				b.WriteString("%25")
			case '/':
				b.WriteString("%2F")
			default:
				b.WriteByte(p[j])
			}
		}
	}
	return b.String()
}

// Split gives back the parts that [Key] joined. Of a key that Key did not make,
// it undoes "%2F" and "%25" and leaves every other "%" as it is.
func Split(key string) []string {
	parts := strings.Split(key, "/")
	if !strings.Contains(key, "%") {
		return parts
	}
	for i, p := range parts {
		parts[i] = unescaper.Replace(p)
	}
	return parts
}

// One pass over the text: "%252F" is an escaped "%" before "2F", not a "/".
var unescaper = strings.NewReplacer("%2F", "/", "%25", "%")
