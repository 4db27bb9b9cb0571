package file

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"slices"
	"sort"

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
		w := writer{budget: 100*len(content) + 10_000}
		if err := w.write(root, 0); err != nil {
			return nil, err
		}
		docs = append(docs, document{json: w.out.Bytes(), line: root.Line, lineAt: w.lineAt, lineOf: w.lineOf(root.Line)})
	}
}

// writer writes a tree of YAML nodes as JSON and remembers which line each part
// came from.
type writer struct {
	out    bytes.Buffer
	marks  []mark // by offset
	budget int    // of bytes: aliases of aliases can stand for far more than a file holds
}

type mark struct {
	offset, line int
	member       string
}

const maxDepth = 1000

func (w *writer) write(n *yaml.Node, depth int) error {
	switch {
	case depth > maxDepth:
		return atLine(n.Line, ErrInvalid, "more than %d levels", maxDepth)
	case w.out.Len() > w.budget:
		return atLine(n.Line, ErrInvalid, "the aliases stand for too much")
	}
	w.marks = append(w.marks, mark{w.out.Len(), n.Line, ""})
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
	members, err := membersOf(n, depth)
	if err != nil {
		return err
	}
	w.out.WriteByte('{')
	for i, m := range members {
		if i > 0 {
			w.out.WriteByte(',')
		}
		w.marks = append(w.marks, mark{w.out.Len(), m.line, m.name})
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
func membersOf(n *yaml.Node, depth int) (members []member, err error) {
	if depth > maxDepth {
		return nil, atLine(n.Line, ErrInvalid, "more than %d levels", maxDepth)
	}
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
	for len(merged) > 0 {
		from := merged[0]
		merged = merged[1:]
		if from.Kind == yaml.AliasNode {
			from = from.Alias
		}
		switch from.Kind {
		case yaml.SequenceNode: // the earlier ones count for more
			merged = slices.Concat(from.Content, merged)
		case yaml.MappingNode:
			inherited, err := membersOf(from, depth+1)
			if err != nil {
				return nil, err
			}
			for _, m := range inherited {
				if _, own := has[m.name]; !own {
					has[m.name] = m.line
					members = append(members, m)
				}
			}
		default:
			return nil, atLine(from.Line, ErrInvalid, "only mappings can be merged in")
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

func (w *writer) lineOf(otherwise int) func(string) int {
	return func(name string) int {
		for _, m := range w.marks {
			if m.member == name {
				return m.line
			}
		}
		return otherwise
	}
}
