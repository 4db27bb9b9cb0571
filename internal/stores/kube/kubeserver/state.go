package kubeserver

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// resource is a kind of object that is served.
type resource struct {
	group, version, plural, kind string
	generation                   bool // counts the changes of its spec
}

var served = []*resource{
	{"", "v1", "configmaps", "ConfigMap", false},
	{"", "v1", "pods", "Pod", true},
	{"apps", "v1", "deployments", "Deployment", true},
}

func (r *resource) apiVersion() string {
	if r.group == "" {
		return r.version
	}
	return r.group + "/" + r.version
}

// doc is an object's JSON. One that is stored is never changed.
type doc map[string]any

// read decodes JSON and keeps its numbers as they are written.
func read(text []byte) (d doc, err error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	err = dec.Decode(&d)
	return d, err
}

func (d doc) text() []byte {
	text, err := json.Marshal(d)
	if err != nil { // it was read from JSON
		panic(err)
	}
	return text
}

func (d doc) clone() doc {
	c, err := read(d.text())
	if err != nil {
		panic(err)
	}
	return c
}

func (d doc) meta() map[string]any {
	m, _ := d["metadata"].(map[string]any)
	return m
}

func (d doc) field(path string) string {
	var at any = map[string]any(d)
	for part := range strings.SplitSeq(path, ".") {
		m, _ := at.(map[string]any)
		at = m[part]
	}
	text, _ := at.(string)
	return text
}

func (d doc) finalizers() []string {
	var names []string
	list, _ := d.meta()["finalizers"].([]any)
	for _, f := range list {
		if name, ok := f.(string); ok {
			names = append(names, name)
		}
	}
	return names
}

func (d doc) deleting() bool { return d.field("metadata.deletionTimestamp") != "" }

// at is the object under another resourceVersion.
func (d doc) at(rev uint64) doc {
	c := maps.Clone(d)
	m := maps.Clone(d.meta())
	m["resourceVersion"] = strconv.FormatUint(rev, 10)
	c["metadata"] = m
	return c
}

// id says where an object is.
type id struct {
	res      *resource
	ns, name string
}

// compare is the order of the database's keys.
func (a id) compare(b id) int { return cmp.Compare(a.ns+"/"+a.name, b.ns+"/"+b.name) }

// change is one write.
type change struct {
	rev           uint64
	id            id
	before, after doc // nil: there was, or is, none
}

// state is the database: the objects and how they came to be.
type state struct {
	rev     uint64
	objects map[id]doc
	history []change // after compacted
	// compacted is the oldest revision that can still be read.
	compacted uint64
}

// newState begins at a number that is no first one, as every cluster does.
func newState() state { return state{rev: 100, compacted: 100, objects: map[id]doc{}} }

func (s state) clone() state {
	s.objects = maps.Clone(s.objects)
	s.history = slices.Clone(s.history)
	return s
}

func (s *state) compact() { s.compacted, s.history = s.rev, nil }

// put writes, with after nil it deletes, and gives the object as it is stored, or
// was last.
func (s *state) put(i id, after doc) doc {
	s.rev++
	before := s.objects[i]
	out := after
	if after == nil {
		delete(s.objects, i)
		out = before.at(s.rev)
	} else {
		after = after.at(s.rev)
		out = after
		s.objects[i] = after
	}
	s.history = append(s.history, change{s.rev, i, before, after})
	return out
}

// after is where in the history the first change after rev lies.
func (s *state) after(rev uint64) int {
	return sort.Search(len(s.history), func(n int) bool { return s.history[n].rev > rev })
}

type entry struct {
	id  id
	doc doc
}

// entries are the objects of a resource at a revision that is not compacted, in order.
func (s *state) entries(res *resource, ns string, rev uint64) []entry {
	then := map[id]doc{}
	for i, d := range s.objects {
		then[i] = d
	}
	for _, c := range slices.Backward(s.history[s.after(rev):]) {
		if c.before == nil {
			delete(then, c.id)
		} else {
			then[c.id] = c.before
		}
	}
	var out []entry
	for i, d := range then {
		if i.res == res && (ns == "" || i.ns == ns) {
			out = append(out, entry{i, d})
		}
	}
	slices.SortFunc(out, func(a, b entry) int { return a.id.compare(b.id) })
	return out
}
