package patch

import "bytes"

// equal compares two values: objects without regard to order, lists in order,
// numbers by sameNumber, strings by what they stand for. It opens both where
// their texts differ.
func equal(a, b *node) bool {
	if a.text != nil && bytes.Equal(a.text, b.text) {
		return true
	}
	kind := a.kind()
	if kind != b.kind() {
		return false
	}
	switch kind {
	case '{':
		x, y := a.members(), b.members()
		if x.len() != y.len() {
			return false
		}
		for m := range y.live() {
			v := x.get(m.name)
			if v == nil || !equal(v, &m.value) {
				return false
			}
		}
		return true
	case '[':
		x, y := a.elements(), b.elements()
		if len(x.all) != len(y.all) {
			return false
		}
		for i := range x.all {
			if !equal(&x.all[i].value, &y.all[i].value) {
				return false
			}
		}
		return true
	case '"':
		return bytes.Equal(unquote(a.text), unquote(b.text))
	}
	// Only numbers are left: the texts of true, false and null were equal.
	return sameNumber(a.text, b.text)
}
