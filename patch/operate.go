package patch

import (
	"fmt"
	"slices"
)

// work is a document while a JSON patch is applied to it. It is the patch's own:
// a patch that fails drops it.
type work struct {
	root node
	// depth is no less than the depth of root, and at most MaxDepth: what walks
	// the document recurses no deeper.
	depth int
	// copied counts against MaxCopied.
	copied int
}

// do carries out one operation. With an error it tells which of the operation's
// pointers is to blame.
func (w *work) do(op *operation) (pointer, error) {
	switch op.verb {
	case "add":
		return op.path, w.put(op.path, node{text: op.value}, op.depth)
	case "remove":
		_, err := w.take(op.path)
		return op.path, err
	case "replace":
		return op.path, w.replace(op)
	case "move":
		return w.move(op)
	case "copy":
		return w.copy(op)
	default: // "test": there are no others
		return op.path, w.test(op)
	}
}

func (w *work) replace(op *operation) error {
	parent, n, err := w.locate(op.path)
	if err != nil {
		return err
	}
	if err := w.deepen(op.path, op.depth); err != nil {
		return err
	}
	if parent != nil && parent.kind() == '{' {
		// Not in place: duplicates of the member go.
		parent.members().set([]byte(op.path[len(op.path)-1]), nil, node{text: op.value})
		return nil
	}
	*n = node{text: op.value}
	return nil
}

func (w *work) test(op *operation) error {
	n, err := w.find(op.path)
	if err != nil {
		return err
	}
	if !equal(n, &node{text: op.value}) {
		return fmt.Errorf("%w: the value is another one", ErrTestFailed)
	}
	return nil
}

// move is a removal and an addition; the path is taken after the removal.
func (w *work) move(op *operation) (pointer, error) {
	switch {
	case len(op.from) == 0:
		return op.from, fmt.Errorf("%w: the whole document can't be moved", ErrPath)
	case op.path.within(op.from):
		return op.path, fmt.Errorf("%w: nothing can be moved into itself", ErrPath)
	case slices.Equal(op.path, op.from):
		_, err := w.find(op.from)
		return op.from, err
	}
	v, err := w.take(op.from)
	if err != nil {
		return op.from, err
	}
	depth := w.depth - len(op.from)
	if len(op.path)+depth > MaxDepth {
		// Only an estimate. What it costs to know is paid from the budget of copies.
		if v, err = w.copyOf(&v); err != nil {
			return op.from, err
		}
		depth = depthOf(v.text)
	}
	return op.path, w.put(op.path, v, depth)
}

func (w *work) copy(op *operation) (pointer, error) {
	n, err := w.find(op.from)
	if err != nil {
		return op.from, err
	}
	v, err := w.copyOf(n)
	if err != nil {
		return op.from, err
	}
	depth := w.depth - len(op.from)
	if len(op.path)+depth > MaxDepth {
		depth = depthOf(v.text)
	}
	return op.path, w.put(op.path, v, depth)
}

// copyOf clones a node, as a text, within the budget.
func (w *work) copyOf(n *node) (node, error) {
	v, size := n.clone()
	if w.copied += size; w.copied > MaxCopied {
		return node{}, fmt.Errorf("%w: more than %d bytes copied", ErrTooLarge, MaxCopied)
	}
	return v, nil
}

// deepen takes note of a value of this depth at a place.
func (w *work) deepen(at pointer, depth int) error {
	if depth += len(at); depth > MaxDepth {
		return errTooDeep()
	}
	w.depth = max(w.depth, depth)
	return nil
}

// put is the one way in which add, move and copy bring in a value. depth is that
// of the value, or more.
func (w *work) put(at pointer, v node, depth int) error {
	if len(at) == 0 {
		w.root, w.depth = v, depth
		return nil
	}
	last := len(at) - 1
	parent, err := w.find(at[:last])
	if err != nil {
		return err
	}
	if err := w.deepen(at, depth); err != nil {
		return err
	}
	token := at[last]
	switch parent.kind() {
	case '{':
		head := append(appendQuoted(nil, token), ':')
		parent.members().set([]byte(token), head, v)
		return nil
	case '[':
		l := parent.elements()
		i := len(l.all)
		if token != endOfList {
			if i, err = indexIn(token, len(l.all)); err != nil {
				return err
			}
		}
		l.insert(i, v)
		return nil
	}
	return errScalar(token)
}

// take removes what is there and gives it.
func (w *work) take(at pointer) (node, error) {
	parent, n, err := w.locate(at)
	if err != nil {
		return node{}, err
	}
	if parent == nil {
		return node{}, fmt.Errorf("%w: the whole document can't be removed", ErrPath)
	}
	v, token := *n, at[len(at)-1]
	if parent.kind() == '{' {
		parent.members().remove([]byte(token))
	} else {
		i, _ := parseIndex(token)
		parent.elements().remove(i)
	}
	return v, nil
}

// find gives what is there. It is valid until something is put or taken.
func (w *work) find(at pointer) (*node, error) {
	_, n, err := w.locate(at)
	return n, err
}

// locate is find that also gives the object or list that it is in; nil for the
// whole document.
func (w *work) locate(at pointer) (parent, n *node, err error) {
	n = &w.root
	for _, token := range at {
		parent = n
		if n, err = child(parent, token); err != nil {
			return nil, nil, err
		}
	}
	return parent, n, nil
}

func child(n *node, token string) (*node, error) {
	switch n.kind() {
	case '{':
		if v := n.members().get([]byte(token)); v != nil {
			return v, nil
		}
		return nil, fmt.Errorf("%w: there is no member %s", ErrPath, clip(token))
	case '[':
		l := n.elements()
		i, err := indexIn(token, len(l.all)-1)
		if err != nil {
			return nil, err
		}
		return &l.all[i].value, nil
	}
	return nil, errScalar(token)
}

// indexIn reads a token as an index from 0 to last.
func indexIn(token string, last int) (int, error) {
	i, ok := parseIndex(token)
	if !ok {
		return 0, fmt.Errorf("%w: %s is no index of an element", ErrPath, clip(token))
	}
	if i > last {
		return 0, fmt.Errorf("%w: index %s is beyond the list's end", ErrPath, clip(token))
	}
	return i, nil
}

func errScalar(token string) error {
	return fmt.Errorf("%w: there is no %s in a value that is neither object nor list", ErrPath, clip(token))
}

// resolve is the pointer as a path: as far as it leads, the document says which
// tokens are indexes.
func (w *work) resolve(at pointer) Path {
	path := at.written()
	n := &w.root
	for i, token := range at {
		if n.kind() == '[' {
			if index, ok := parseIndex(token); ok {
				path[i] = Step{Index: index, InList: true}
			}
		}
		var err error
		if n, err = child(n, token); err != nil {
			break
		}
	}
	return path
}
