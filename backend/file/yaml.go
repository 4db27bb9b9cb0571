package file

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"sort"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// splitYAML finds the documents of a YAML file and writes each as JSON. Documents
// without content (comments only, or null) are none.
func splitYAML(content []byte) (docs []document, err error) {
	loader, err := yaml.NewLoader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	for {
		var node yaml.Node
		err := loader.Load(&node)
		var bad *yaml.LoadError
		switch {
		case errors.Is(err, io.EOF):
			return docs, nil
		case errors.As(err, &bad) && bad.Mark.Line == 0: // not text: the reader's errors have no line
			return nil, atLine(lineOfBadText(content), ErrSyntax, "%s", bad.Message)
		case errors.As(err, &bad):
			// What is missing at the end is missing behind the last line.
			last := bytes.Count(bytes.TrimSuffix(content, []byte("\n")), []byte("\n")) + 1
			return nil, atLine(min(bad.Mark.Line, last), ErrSyntax, "%s", bad.Message)
		case err != nil:
			return nil, atLine(0, ErrSyntax, "%v", err)
		}
		root := &node
		if node.Kind == yaml.DocumentNode && len(node.Content) == 1 {
			root = node.Content[0]
		}
		if root.Kind == 0 || root.Kind == yaml.ScalarNode && root.ShortTag() == "!!null" {
			continue
		}
		w := writer{steps: 10*len(content) + 10_000, bytes: 100*len(content) + 10_000}
		if err := w.write(root, 0); err != nil {
			return nil, err
		}
		docs = append(docs, document{json: w.out.Bytes(), line: root.Line, lineAt: w.lineAt})
	}
}

// lineOfBadText is where the first thing stands that no text holds; 0 if nowhere.
func lineOfBadText(content []byte) int {
	for i, line := 0, 1; i < len(content); {
		r, size := utf8.DecodeRune(content[i:])
		switch {
		case r == '\n':
			line++
		case r == utf8.RuneError && size == 1, unicode.IsControl(r) && r != '\t' && r != '\r':
			return line
		}
		i += size
	}
	return 0
}

// writer writes a tree of YAML nodes as JSON and remembers which line each part
// came from.
type writer struct {
	out   bytes.Buffer
	marks []mark // by offset
	// What is left to spend, on nodes visited and on bytes written: aliases of
	// aliases can stand for far more than a file holds, and for themselves.
	steps, bytes int
}

type mark struct{ offset, line int }

const maxDepth = 1000

// spend is called for every node that is visited.
func (w *writer) spend(n *yaml.Node, depth int) error {
	w.steps--
	switch {
	case depth > maxDepth:
		return atLine(n.Line, ErrInvalid, "more than %d levels", maxDepth)
	case w.steps < 0 || w.out.Len() > w.bytes:
		return atLine(n.Line, ErrInvalid, "the aliases stand for too much")
	}
	return nil
}

func (w *writer) write(n *yaml.Node, depth int) error {
	if err := w.spend(n, depth); err != nil {
		return err
	}
	w.marks = append(w.marks, mark{w.out.Len(), n.Line})
	switch n.Kind {
	case yaml.AliasNode:
		return w.write(n.Alias, depth+1)
	case yaml.SequenceNode:
		w.out.WriteByte('[')
		for i, element := range n.Content {
			if i > 0 {
				w.out.WriteByte(',')
			}
			if err := w.write(element, depth+1); err != nil {
				return err
			}
		}
		w.out.WriteByte(']')
		return nil
	case yaml.MappingNode:
		return w.mapping(n, depth)
	}
	return w.scalar(n)
}

func (w *writer) mapping(n *yaml.Node, depth int) error {
	members, err := w.membersOf(n, depth)
	if err != nil {
		return err
	}
	w.out.WriteByte('{')
	for i, m := range members {
		if i > 0 {
			w.out.WriteByte(',')
		}
		w.marks = append(w.marks, mark{w.out.Len(), m.line})
		name, _ := json.Marshal(m.name)
		w.out.Write(name)
		w.out.WriteByte(':')
		if err := w.write(m.value, depth+1); err != nil {
			return err
		}
	}
	w.out.WriteByte('}')
	return nil
}

type member struct {
	name  string
	line  int
	value *yaml.Node
}

// membersOf lists a mapping's members, those that it merges in ("<<") last and
// only where it has none of the name itself.
func (w *writer) membersOf(n *yaml.Node, depth int) (members []member, err error) {
	w.steps -= len(n.Content)
	var merged []*yaml.Node
	has := map[string]int{} // the line
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			return nil, atLine(key.Line, ErrInvalid, "a key must be a scalar")
		}
		if key.ShortTag() == "!!merge" {
			merged = append(merged, value)
			continue
		}
		if line, twice := has[key.Value]; twice {
			return nil, atLine(key.Line, ErrInvalid, "member %q stands on line %d already", key.Value, line)
		}
		has[key.Value] = key.Line
		members = append(members, member{key.Value, key.Line, value})
	}
	inherit := func(from *yaml.Node) error {
		if from.Kind == yaml.AliasNode {
			from = from.Alias
		}
		if err := w.spend(from, depth); err != nil {
			return err
		}
		if from.Kind != yaml.MappingNode {
			return atLine(from.Line, ErrInvalid, "only mappings can be merged in")
		}
		inherited, err := w.membersOf(from, depth+1)
		for _, m := range inherited {
			if _, own := has[m.name]; !own {
				has[m.name] = m.line
				members = append(members, m)
			}
		}
		return err
	}
	for _, from := range merged {
		if from.Kind == yaml.AliasNode {
			from = from.Alias
		}
		if from.Kind != yaml.SequenceNode {
			if err := inherit(from); err != nil {
				return nil, err
			}
			continue
		}
		for _, one := range from.Content { // the earlier ones count for more
			if err := inherit(one); err != nil {
				return nil, err
			}
		}
	}
	return members, nil
}

// A JSON number needs no reading: it keeps its digits.
var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

func (w *writer) scalar(n *yaml.Node) error {
	var v any = n.Value
	switch tag := n.ShortTag(); tag {
	case "!!null", "!!bool":
		if err := n.Decode(&v); err != nil {
			return atLine(n.Line, ErrInvalid, "%v", err)
		}
	case "!!int", "!!float":
		if jsonNumber.MatchString(n.Value) {
			v = json.Number(n.Value)
		} else if err := n.Decode(&v); err != nil {
			return atLine(n.Line, ErrInvalid, "%v", err)
		}
	}
	text, err := json.Marshal(v) // strings, and times, are what stands there
	if err != nil {
		return atLine(n.Line, ErrInvalid, "%s cannot be written as JSON", n.Value)
	}
	w.out.Write(text)
	return nil
}

// lineAt is the line of what stands at an offset of the JSON.
func (w *writer) lineAt(offset int) int {
	i := sort.Search(len(w.marks), func(i int) bool { return w.marks[i].offset > offset })
	if i == 0 {
		return 0
	}
	return w.marks[i-1].line
}
