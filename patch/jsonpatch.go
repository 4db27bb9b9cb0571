package patch

import (
	"bytes"
	"fmt"
)

// JSON reads a JSON patch (RFC 6902): a list of operations, each of them add,
// remove, replace, move, copy or test. Members of an operation that the RFC does
// not know are ignored.
//
// Apply carries the operations out in order; the first that fails fails them
// all, with an *Error that names it.
//
// The text is copied. Errors are ErrInvalidJSON, ErrBadPatch (an *Error, when it
// is about one operation) and ErrTooLarge.
func JSON(ops []byte) (Patch, error) {
	t, err := check(ops)
	if err != nil {
		return nil, err
	}
	return newJSON(bytes.Clone(t.value))
}

type jsonPatch struct {
	text []byte
	ops  []operation
}

// operation is one operation, read once and never changed.
type operation struct {
	verb       string
	path, from pointer
	value      []byte
	depth      int // of value
}

// newJSON reads the operations in a valid text, which is kept.
func newJSON(ops []byte) (Patch, error) {
	n := node{text: ops}
	if n.kind() != '[' {
		return nil, fmt.Errorf("%w: a JSON patch is a list of operations", ErrBadPatch)
	}
	all := n.elements().all
	if len(all) > MaxOps {
		return nil, fmt.Errorf("%w: more than %d operations", ErrTooLarge, MaxOps)
	}
	p := &jsonPatch{text: ops, ops: make([]operation, len(all))}
	for i, e := range all {
		if err := p.ops[i].read(&e.value); err != nil {
			return nil, &Error{Op: i, Verb: p.ops[i].verb, Err: err}
		}
	}
	return p, nil
}

func (op *operation) read(n *node) error {
	if n.kind() != '{' {
		return fmt.Errorf("%w: an operation is an object", ErrBadPatch)
	}
	o := n.members()
	verb, err := stringMember(o, "op")
	if err != nil {
		return err
	}
	needsFrom, needsValue := false, false
	switch verb {
	case "add", "replace", "test":
		needsValue = true
	case "move", "copy":
		needsFrom = true
	case "remove":
	default:
		return fmt.Errorf("%w: there is no operation %s", ErrBadPatch, clip(verb))
	}
	op.verb = verb
	if op.path, err = pointerMember(o, "path"); err != nil {
		return err
	}
	if needsFrom {
		if op.from, err = pointerMember(o, "from"); err != nil {
			return err
		}
	}
	if needsValue {
		value := o.get([]byte("value"))
		if value == nil {
			return fmt.Errorf("%w: value is missing", ErrBadPatch)
		}
		op.value, op.depth = value.text, depthOf(value.text)
	}
	return nil
}

func stringMember(o *object, name string) (string, error) {
	v := o.get([]byte(name))
	if v == nil {
		return "", fmt.Errorf("%w: %s is missing", ErrBadPatch, name)
	}
	if v.kind() != '"' {
		return "", fmt.Errorf("%w: %s is no string", ErrBadPatch, name)
	}
	return string(unquote(v.text)), nil
}

func pointerMember(o *object, name string) (pointer, error) {
	s, err := stringMember(o, name)
	if err != nil {
		return nil, err
	}
	p, err := parsePointer(s)
	if err != nil {
		return nil, fmt.Errorf("%w: %s is no JSON pointer: %s: %w", ErrBadPatch, name, clip(s), err)
	}
	return p, nil
}

// written is the pointer as a path, before any document says what it means.
func (p pointer) written() Path {
	path := make(Path, len(p))
	for i, token := range p {
		path[i].Member = token
	}
	return path
}

func (p *jsonPatch) MediaType() string { return JSONMediaType }

func (p *jsonPatch) MarshalJSON() ([]byte, error) { return bytes.Clone(p.text), nil }

func (p *jsonPatch) IsEmpty() bool { return len(p.ops) == 0 }

func (p *jsonPatch) Apply(doc []byte) ([]byte, error) {
	t, err := check(doc)
	if err != nil {
		return nil, err
	}
	w := work{root: node{text: t.value}, depth: t.depth}
	for i := range p.ops {
		op := &p.ops[i]
		if at, err := w.do(op); err != nil {
			return nil, &Error{Op: i, Verb: op.verb, Path: w.resolve(at), Err: err}
		}
	}
	return t.around(&w.root, len(p.text)), nil
}
