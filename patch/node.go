package patch

// node is a JSON value in a document that is being patched. At first it is its
// text; it is opened, one level at a time, only where a patch goes into it.
// Written again, what was not opened is the text as it was, and what was opened
// but not changed is too, white space included.
//
// The text is never written to, so nodes may share it. Opening changes the node:
// a node belongs to one call.
type node struct {
	text []byte // the value alone; of no meaning once opened
	obj  *object
	list *list
}

// kind is '{', '[', '"', '0' for numbers, or 't', 'f', 'n'.
func (n *node) kind() byte {
	switch {
	case n.obj != nil:
		return '{'
	case n.list != nil:
		return '['
	}
	if b := n.text[0]; b != '-' && !isDigit(b) {
		return b
	}
	return '0'
}

// members opens a node that is an object.
func (n *node) members() *object {
	if n.obj == nil {
		n.obj = openObject(n.text)
		n.text = nil
	}
	return n.obj
}

// elements opens a node that is a list.
func (n *node) elements() *list {
	if n.list == nil {
		n.list = openList(n.text)
		n.text = nil
	}
	return n.list
}

// appendTo writes the node.
func (n *node) appendTo(out []byte) []byte {
	switch {
	case n.obj != nil:
		return n.obj.appendTo(out)
	case n.list != nil:
		return n.list.appendTo(out)
	}
	return append(out, n.text...)
}

// clone is a node with the same value that shares nothing that can change. It
// says how many bytes it has.
func (n *node) clone() (node, int) {
	if n.obj != nil || n.list != nil {
		text := n.appendTo(nil)
		return node{text: text}, len(text)
	}
	return *n, len(n.text)
}

// list is an opened list.
type list struct {
	all []*element
	// open and close are the white space after [ and before ]; lead is what a
	// new element gets in front, so that indented text stays so.
	open, close, lead []byte
}

type element struct {
	before, after []byte // white space; unused at the list's ends
	value         node
}

func openList(text []byte) *list {
	l := &list{}
	at := skipSpace(text, 1)
	l.open = text[1:at]
	if text[at] == ']' {
		return l
	}
	// One allocation for all elements; the pointers make moving them cheap.
	var slab []element
	for {
		end := skipValue(text, at)
		next := skipSpace(text, end)
		e := element{before: l.lead, after: text[end:next], value: node{text: text[at:end]}}
		if len(slab) == 0 {
			e.before = l.open
		}
		l.lead = e.before
		slab = append(slab, e)
		if text[next] == ']' {
			break
		}
		at = skipSpace(text, next+1)
		l.lead = text[next+1 : at]
	}
	last := &slab[len(slab)-1]
	l.close, last.after = last.after, nil
	l.all = make([]*element, len(slab))
	for i := range slab {
		l.all[i] = &slab[i]
	}
	return l
}

func (l *list) insert(i int, v node) {
	l.all = append(l.all, nil)
	copy(l.all[i+1:], l.all[i:])
	l.all[i] = &element{before: l.lead, value: v}
}

func (l *list) remove(i int) {
	copy(l.all[i:], l.all[i+1:])
	l.all[len(l.all)-1] = nil
	l.all = l.all[:len(l.all)-1]
}

func (l *list) appendTo(out []byte) []byte {
	out = append(out, '[')
	out = append(out, l.open...)
	for i, e := range l.all {
		if i > 0 {
			out = append(out, ',')
			out = append(out, e.before...)
		}
		out = e.value.appendTo(out)
		if i < len(l.all)-1 {
			out = append(out, e.after...)
		}
	}
	if len(l.all) > 0 {
		out = append(out, l.close...)
	}
	return append(out, ']')
}
