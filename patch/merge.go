package patch

import "bytes"

// Merge reads a JSON merge patch (RFC 7386).
//
// An object says what to change in the document's object: a null removes the
// member, an object is applied to the member in turn, anything else takes the
// member's place. A patch that is no object takes the place of the document.
// Lists are never merged; they come in as they are, nulls inside them included.
//
// The text is copied. Errors are ErrInvalidJSON and ErrTooLarge.
func Merge(patch []byte) (Patch, error) {
	t, err := check(patch)
	if err != nil {
		return nil, err
	}
	return newMerge(bytes.Clone(t.value)), nil
}

// newMerge makes the patch of a valid text, which is kept.
func newMerge(patch []byte) *mergePatch {
	p := &mergePatch{text: patch}
	if n := (node{text: patch}); n.kind() == '{' {
		p.object = newMergeObject(&n)
		p.empty = len(p.object.members) == 0
	}
	return p
}

type mergePatch struct {
	text   []byte
	object *mergeObject // nil when the patch is no object
	// empty is what IsEmpty says.
	empty bool
}

// mergeObject is a patch's object, read once. It is never changed, so that any
// number of Apply may use it.
type mergeObject struct {
	text    []byte
	members []mergeMember
	// plain says that text, as a value, is what the object makes of an empty
	// one: there is no null to leave out of it.
	plain bool
}

// mergeMember removes the member when it has neither value nor object.
type mergeMember struct {
	name, head []byte
	value      []byte
	object     *mergeObject
}

func newMergeObject(n *node) *mergeObject {
	m := &mergeObject{text: n.text, plain: true}
	o := n.members()
	m.members = make([]mergeMember, 0, o.len())
	if o.len() < len(o.all) {
		m.plain = false // a duplicate that does not count may hold anything
	}
	for member := range o.live() {
		mm := mergeMember{name: member.name, head: member.head}
		switch member.value.kind() {
		case 'n':
			m.plain = false
		case '{':
			mm.object = newMergeObject(&member.value)
			m.plain = m.plain && mm.object.plain
		default:
			mm.value = member.value.text
		}
		m.members = append(m.members, mm)
	}
	return m
}

func (p *mergePatch) MediaType() string { return MergeMediaType }

func (p *mergePatch) MarshalJSON() ([]byte, error) { return bytes.Clone(p.text), nil }

func (p *mergePatch) IsEmpty() bool { return p.empty }

func (p *mergePatch) Apply(doc []byte) ([]byte, error) {
	t, err := check(doc)
	if err != nil {
		return nil, err
	}
	root := node{text: t.value}
	switch {
	case p.object == nil:
		root.text = p.text
	case root.kind() != '{':
		root = p.object.asValue()
	default:
		p.object.applyTo(root.members())
	}
	return t.around(&root, len(p.text)), nil
}

// around writes what became of the text's value, within the same white space.
// more is how much longer it may be, a guess.
func (t text) around(root *node, more int) []byte {
	out := make([]byte, 0, len(t.before)+len(t.value)+len(t.after)+more)
	out = append(out, t.before...)
	out = root.appendTo(out)
	return append(out, t.after...)
}

func (m *mergeObject) applyTo(o *object) {
	for i := range m.members {
		mm := &m.members[i]
		switch {
		case mm.value != nil:
			o.set(mm.name, mm.head, node{text: mm.value})
		case mm.object == nil:
			o.remove(mm.name)
		default:
			if v := o.get(mm.name); v != nil && v.kind() == '{' {
				mm.object.applyTo(v.members())
			} else {
				o.set(mm.name, mm.head, mm.object.asValue())
			}
		}
	}
}

// asValue is what the object makes of an empty one: itself, without its nulls.
func (m *mergeObject) asValue() node {
	if m.plain {
		return node{text: m.text}
	}
	return node{text: m.appendValue(nil)}
}

func (m *mergeObject) appendValue(out []byte) []byte {
	if m.plain {
		return append(out, m.text...)
	}
	out = append(out, '{')
	first := true
	for i := range m.members {
		mm := &m.members[i]
		if mm.value == nil && mm.object == nil {
			continue
		}
		if !first {
			out = append(out, ',')
		}
		first = false
		out = append(out, mm.head...)
		if mm.object != nil {
			out = mm.object.appendValue(out)
		} else {
			out = append(out, mm.value...)
		}
	}
	return append(out, '}')
}
