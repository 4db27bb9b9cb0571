package patch

import (
	"bytes"
	"fmt"
	"slices"
)

// MergeBetween makes the merge patch that leads from one document to another:
// Apply of it to from gives to. For equal documents it is empty, see [IsEmpty].
//
// A merge patch can't set a member to null. Where to has a null that from has
// not, there is no such patch: the answer is ErrNotRepresentable, in an *Error
// with the path of the first such null. [JSONBetween] has no such gap. Nulls
// that both have, and nulls in lists, are no obstacle.
//
// Other errors are ErrInvalidJSON and ErrTooLarge.
func MergeBetween(from, to []byte) (Patch, error) {
	p, lost, err := mergeDiff(from, to)
	if err != nil {
		return nil, err
	}
	if lost != nil {
		return nil, &Error{Op: -1, Path: lost, Err: fmt.Errorf("%w: it can't set null", ErrNotRepresentable)}
	}
	return p, nil
}

// mergeDiff makes the patch that comes closest: it gives to without the nulls
// that can't be set. lost is the path of the first of these.
func mergeDiff(from, to []byte) (p *mergePatch, lost Path, err error) {
	a, b, err := checkBoth(from, to)
	if err != nil {
		return nil, nil, err
	}
	d := mergeDiffer{}
	if a.kind() == '{' && b.kind() == '{' {
		text := d.object(nil, a.members(), b.members())
		return newMerge(text), d.lost, nil
	}
	// One of them is no object, so all of to is the patch. Its text says nothing of
	// whether it changes from: {} turns a list into {}, and 5 leaves 5 as it is.
	p = newMerge(bytes.Clone(b.text))
	p.empty = equal(a, b)
	d.value(b)
	return p, d.lost, nil
}

func checkBoth(from, to []byte) (a, b *node, err error) {
	x, err := check(from)
	if err != nil {
		return nil, nil, fmt.Errorf("from: %w", err)
	}
	y, err := check(to)
	if err != nil {
		return nil, nil, fmt.Errorf("to: %w", err)
	}
	return &node{text: x.value}, &node{text: y.value}, nil
}

type mergeDiffer struct {
	at   Path // where the walk is
	lost Path // the first null that the patch can't set; nil when there is none
}

// object appends the patch from a to b.
func (d *mergeDiffer) object(out []byte, a, b *object) []byte {
	out = append(out, '{')
	start := len(out)
	head := func(m *member) {
		if len(out) > start {
			out = append(out, ',')
		}
		out = append(out, m.head...)
	}
	for m := range a.live() {
		if b.get(m.name) == nil {
			head(m)
			out = append(out, "null"...)
		}
	}
	for m := range b.live() {
		old := a.get(m.name)
		d.at = append(d.at, Step{Member: string(m.name)})
		switch {
		case old != nil && old.kind() == '{' && m.value.kind() == '{':
			if bytes.Equal(old.text, m.value.text) && old.text != nil {
				break
			}
			before := len(out)
			head(m)
			inner := len(out)
			out = d.object(out, old.members(), m.value.members())
			if len(out) == inner+len("{}") {
				out = out[:before]
			}
		case old == nil || !equal(old, &m.value):
			head(m)
			out = m.value.appendTo(out)
			d.value(&m.value)
		}
		d.at = d.at[:len(d.at)-1]
	}
	return append(out, '}')
}

// value looks for what is lost of a value that comes in whole: itself, if it is a
// null in an object, and all nulls in it that are not in lists.
func (d *mergeDiffer) value(v *node) {
	if d.lost != nil {
		return
	}
	switch v.kind() {
	case 'n':
		if len(d.at) > 0 {
			d.lost = slices.Clone(d.at)
		}
	case '{':
		if v.text != nil && !bytes.Contains(v.text, []byte("null")) {
			return
		}
		for m := range v.members().live() {
			d.at = append(d.at, Step{Member: string(m.name)})
			d.value(&m.value)
			d.at = d.at[:len(d.at)-1]
		}
	}
}
