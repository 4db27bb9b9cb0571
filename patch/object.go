package patch

import (
	"bytes"
	"iter"
)

// object is an opened object. Its members stay in the order of the text, and
// removed ones stay where they are, marked.
type object struct {
	all []member
	// index finds the last member of each name. Small objects, and those asked
	// few times, do without.
	index map[string]int
	asked int
	// marked says that size counts the members, each name once.
	marked bool
	size   int
	// open and close are the white space after { and before }; lead is what a
	// new member gets in front, so that indented text stays so.
	open, close, lead []byte
}

type member struct {
	before, after []byte // white space; unused at the object's ends
	head          []byte // quoted name, colon, and the white space around it, as it was
	name          []byte // what the quoted name stands for
	value         node
	gone          bool
	shadowed      bool // by a later one of the same name; only once marked
	// earlier is the index of the member of the same name before this one, -1
	// when there is none. Only with an index.
	earlier int
}

func openObject(text []byte) *object {
	o := &object{}
	at := skipSpace(text, 1)
	o.open = text[1:at]
	if text[at] == '}' {
		return o
	}
	o.lead = o.open
	for {
		endName := skipString(text, at)
		colon := skipSpace(text, endName)
		start := skipSpace(text, colon+1)
		end := skipValue(text, start)
		next := skipSpace(text, end)
		o.all = append(o.all, member{
			before: o.lead,
			head:   text[at:start],
			name:   unquote(text[at:endName]),
			value:  node{text: text[start:end]},
			after:  text[end:next],
		})
		if text[next] == '}' {
			break
		}
		at = skipSpace(text, next+1)
		o.lead = text[next+1 : at]
	}
	last := &o.all[len(o.all)-1]
	o.close, last.after = last.after, nil
	return o
}

const (
	fewMembers   = 16 // up to here, looking at each beats any index
	fewQuestions = 4  // and so it does for this many questions
)

// find gives the index of the last member called name, which is the one that
// counts; -1 when there is none. The member may be gone.
func (o *object) find(name []byte) int {
	if o.index == nil && len(o.all) > fewMembers {
		if o.asked++; o.asked > fewQuestions {
			o.buildIndex()
		}
	}
	if o.index != nil {
		if i, ok := o.index[string(name)]; ok {
			return i
		}
		return -1
	}
	for i := len(o.all) - 1; i >= 0; i-- {
		if bytes.Equal(o.all[i].name, name) {
			return i
		}
	}
	return -1
}

func (o *object) buildIndex() {
	o.index = make(map[string]int, len(o.all))
	for i := range o.all {
		m := &o.all[i]
		m.earlier = -1
		if j, ok := o.index[string(m.name)]; ok {
			m.earlier = j
		}
		o.index[string(m.name)] = i
	}
}

// get gives the value of the member called name, nil when there is none. It is
// valid until the next set.
func (o *object) get(name []byte) *node {
	if i := o.find(name); i >= 0 && !o.all[i].gone {
		return &o.all[i].value
	}
	return nil
}

// set gives the member called name this value. A member that is there keeps its
// place and its head; a new one goes to the end, under the head that is given.
func (o *object) set(name, head []byte, v node) {
	if i := o.find(name); i >= 0 {
		o.dropEarlier(i)
		if o.all[i].gone {
			o.size++
		}
		o.all[i].value = v
		o.all[i].gone = false
		return
	}
	o.size++
	if o.index != nil {
		o.index[string(name)] = len(o.all)
	}
	o.all = append(o.all, member{before: o.lead, head: head, name: name, value: v, earlier: -1})
}

// remove takes the member called name away, with all its duplicates: otherwise
// one that did not count would come to count.
func (o *object) remove(name []byte) {
	i := o.find(name)
	if i < 0 || o.all[i].gone {
		return
	}
	o.dropEarlier(i)
	o.all[i].gone = true
	o.size--
}

// dropEarlier removes the duplicates before the member at i: a member that a
// patch names is there once afterwards.
func (o *object) dropEarlier(i int) {
	if o.index != nil {
		for j := o.all[i].earlier; j >= 0; j = o.all[j].earlier {
			o.all[j].gone = true
		}
		o.all[i].earlier = -1
		return
	}
	for j := range i {
		if bytes.Equal(o.all[j].name, o.all[i].name) {
			o.all[j].gone = true
		}
	}
}

// mark finds the members that don't count since a later one has their name, and
// counts the others. It changes nothing of what is written.
func (o *object) mark() {
	if o.marked {
		return
	}
	o.marked, o.size = true, 0
	if len(o.all) > fewMembers && o.index == nil {
		o.buildIndex()
	}
	for i := range o.all {
		m := &o.all[i]
		m.shadowed = o.find(m.name) != i
		if !m.shadowed && !m.gone {
			o.size++
		}
	}
}

// len counts the members, each name once.
func (o *object) len() int {
	o.mark()
	return o.size
}

// live gives the members that count, in order. They are valid until the next set.
func (o *object) live() iter.Seq[*member] {
	o.mark()
	return func(yield func(*member) bool) {
		for i := range o.all {
			if m := &o.all[i]; !m.gone && !m.shadowed && !yield(m) {
				return
			}
		}
	}
}

func (o *object) appendTo(out []byte) []byte {
	last := len(o.all) - 1
	for last >= 0 && o.all[last].gone {
		last--
	}
	out = append(out, '{')
	if last >= 0 || len(o.all) == 0 {
		out = append(out, o.open...)
	}
	first := true
	for i := range last + 1 {
		m := &o.all[i]
		if m.gone {
			continue
		}
		if !first {
			out = append(out, ',')
			out = append(out, m.before...)
		}
		first = false
		out = append(out, m.head...)
		out = m.value.appendTo(out)
		if i < last {
			out = append(out, m.after...)
		}
	}
	if last >= 0 {
		out = append(out, o.close...)
	}
	return append(out, '}')
}
