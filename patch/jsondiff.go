package patch

// JSONBetween makes a JSON patch that leads from one document to another: Apply
// of it to from gives to, nulls included. For equal documents it is empty, see
// [IsEmpty].
//
// Objects are compared member by member. Of lists, what both have at the
// beginning and at the end is kept, and the rest is compared position by
// position. The patch is right but need not be the smallest one. If it would
// have more than MaxOps operations, it is one that replaces the document.
//
// Errors are ErrInvalidJSON and ErrTooLarge.
func JSONBetween(from, to []byte) (Patch, error) {
	a, b, err := checkBoth(from, to)
	if err != nil {
		return nil, err
	}
	all := b.text
	d := jsonDiffer{out: []byte("[")}
	d.values(a, b)
	if d.ops > MaxOps {
		d = jsonDiffer{out: []byte("[")}
		d.op("replace", &node{text: all})
	}
	text := append(d.out, ']')
	if depthOf(text) > MaxDepth {
		return nil, errTooDeep() // JSON would not read it
	}
	return newJSON(text)
}

type jsonDiffer struct {
	at  Path // where the walk is
	out []byte
	ops int
}

// op appends an operation on the place where the walk is.
func (d *jsonDiffer) op(verb string, value *node) {
	if d.ops++; d.ops > MaxOps {
		return // it won't be used
	}
	if d.ops > 1 {
		d.out = append(d.out, ',')
	}
	d.out = append(d.out, `{"op":"`...)
	d.out = append(d.out, verb...)
	d.out = append(d.out, `","path":`...)
	d.out = appendQuoted(d.out, d.at.String())
	if value != nil {
		d.out = append(d.out, `,"value":`...)
		d.out = value.appendTo(d.out)
	}
	d.out = append(d.out, '}')
}

func (d *jsonDiffer) values(a, b *node) {
	switch kind := a.kind(); {
	case kind == '{' && b.kind() == '{':
		d.objects(a.members(), b.members())
	case kind == '[' && b.kind() == '[':
		d.lists(a.elements().all, b.elements().all)
	case !equal(a, b):
		d.op("replace", b)
	}
}

func (d *jsonDiffer) objects(a, b *object) {
	d.at = append(d.at, Step{})
	for m := range a.live() {
		if b.get(m.name) == nil {
			d.at[len(d.at)-1] = Step{Member: string(m.name)}
			d.op("remove", nil)
		}
	}
	for m := range b.live() {
		d.at[len(d.at)-1] = Step{Member: string(m.name)}
		if old := a.get(m.name); old != nil {
			d.values(old, &m.value)
		} else {
			d.op("add", &m.value)
		}
	}
	d.at = d.at[:len(d.at)-1]
}

func (d *jsonDiffer) lists(a, b []*element) {
	first := 0
	for first < min(len(a), len(b)) && equal(&a[first].value, &b[first].value) {
		first++
	}
	for len(a) > first && len(b) > first && equal(&a[len(a)-1].value, &b[len(b)-1].value) {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	both := min(len(a), len(b))
	for i := first; i < both; i++ {
		d.at = append(d.at, Step{Index: i, InList: true})
		d.values(&a[i].value, &b[i].value)
		d.at = d.at[:len(d.at)-1]
	}
	// From the end: a removal moves what is behind it.
	for i := len(a) - 1; i >= both; i-- {
		d.at = append(d.at, Step{Index: i, InList: true})
		d.op("remove", nil)
		d.at = d.at[:len(d.at)-1]
	}
	for i := both; i < len(b); i++ {
		d.at = append(d.at, Step{Index: i, InList: true})
		d.op("add", &b[i].value)
		d.at = d.at[:len(d.at)-1]
	}
}
