package patch

// MergeNear is the merge patch that comes closest, whether or not it leads to
// exactly the document asked for.
func MergeNear(from, to []byte) (Patch, error) {
	p, _, err := mergeDiff(from, to)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Equal compares two valid texts by the package's own rule.
func Equal(a, b []byte) bool { return equal(&node{text: a}, &node{text: b}) }

// SameNumber is the rule of numeric equality.
func SameNumber(a, b string) bool { return sameNumber([]byte(a), []byte(b)) }

// Check says whether a text is valid.
func Check(data []byte) error { _, err := check(data); return err }

// Depth is what check and depthOf, two ways to count, say of a valid text.
func Depth(data []byte) (checked, scanned int) {
	t, _ := check(data)
	return t.depth, depthOf(data)
}

// Reopen opens every object and list of a valid text and writes it again.
func Reopen(data []byte) []byte {
	n := node{text: data}
	openAll(&n)
	return n.appendTo(nil)
}

func openAll(n *node) {
	switch n.kind() {
	case '{':
		for m := range n.members().live() {
			openAll(&m.value)
		}
	case '[':
		for _, e := range n.elements().all {
			openAll(&e.value)
		}
	}
}

// Quote and Unquote turn a string into JSON and back.
func Quote(s string) string   { return string(appendQuoted(nil, s)) }
func Unquote(s string) string { return string(unquote([]byte(s))) }
