package file

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// checkMembers walks a document along the type that it shall become, and finds
// what encoding/json lets pass or cannot place: a member that the type does not
// have, or has in other letters, a member that stands twice, a value that the
// type's own code refuses.
func checkMembers(doc document, t reflect.Type) error {
	w := walker{json.NewDecoder(bytes.NewReader(doc.json)), doc}
	return w.value(t, "")
}

type walker struct {
	*json.Decoder
	doc document
}

// here is the line of the token that was read last.
func (w walker) here() int { return w.doc.lineAt(int(w.InputOffset()) - 1) }

// value checks the next value against t; nil is a type that nothing is known of.
func (w walker) value(t reflect.Type, path string) error {
	for t != nil && t.Kind() == reflect.Pointer && !readsItself(t) {
		t = t.Elem()
	}
	if t != nil && readsItself(t) {
		var raw json.RawMessage
		if err := w.Decode(&raw); err != nil {
			return err
		}
		if err := json.Unmarshal(raw, reflect.New(t).Interface()); err != nil {
			return atLine(w.here(), ErrInvalid, "%s%v", prefix(path), err)
		}
		return nil
	}
	token, err := w.Token()
	switch {
	case err != nil:
		return err
	case token == json.Delim('{'):
		return w.object(t, path)
	case token == json.Delim('['):
		return w.array(t, path)
	}
	return nil // the decoder knows better
}

func (w walker) object(t reflect.Type, path string) error {
	var fields map[string]reflect.Type
	var element reflect.Type
	if t != nil && t.Kind() == reflect.Struct {
		fields = map[string]reflect.Type{}
		addFields(fields, t, 0)
	} else if t != nil && t.Kind() == reflect.Map {
		element = t.Elem()
	}
	seen := map[string]int{}
	for w.More() {
		token, err := w.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		if line, twice := seen[name]; twice {
			return atLine(w.here(), ErrInvalid, "%smember %q stands on line %d already", prefix(path), name, line)
		}
		seen[name] = w.here()
		of := element
		if fields != nil {
			known := false
			if of, known = fields[name]; !known {
				return atLine(w.here(), ErrInvalid, "%sunknown member %q%s", prefix(path), name, meant(fields, name))
			}
		}
		if err := w.value(of, strings.TrimPrefix(path+"."+name, ".")); err != nil {
			return err
		}
	}
	_, err := w.Token()
	return err
}

func (w walker) array(t reflect.Type, path string) error {
	var element reflect.Type
	if t != nil && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) {
		element = t.Elem()
	}
	for i := 0; w.More(); i++ {
		if err := w.value(element, fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return err
		}
	}
	_, err := w.Token()
	return err
}

func prefix(path string) string {
	if path == "" {
		return ""
	}
	return path + ": "
}

func meant(fields map[string]reflect.Type, name string) string {
	for field := range fields {
		if strings.EqualFold(field, name) {
			return fmt.Sprintf(" (%q?)", field)
		}
	}
	return ""
}

// readsItself: the type has code of its own for JSON.
func readsItself(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) ||
		reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// addFields lists the members of a struct as encoding/json names them. Fields of
// embedded structs count as its own, but do not hide what it has itself.
func addFields(fields map[string]reflect.Type, t reflect.Type, depth int) {
	if depth > 20 {
		return // a type that embeds itself
	}
	var embedded []reflect.Type
	for i := range t.NumField() {
		f := t.Field(i)
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case tag == "-" && options == "" && !strings.HasSuffix(f.Tag.Get("json"), ","):
		case f.Anonymous && tag == "" && inner.Kind() == reflect.Struct && !readsItself(inner):
			embedded = append(embedded, inner)
		case !f.IsExported():
		case strings.Contains(options, "string"): // the value is in quotes
			fields[nameOf(f, tag)] = nil
		default:
			fields[nameOf(f, tag)] = f.Type
		}
	}
	for _, inner := range embedded {
		below := map[string]reflect.Type{}
		addFields(below, inner, depth+1)
		for name, of := range below {
			if _, hidden := fields[name]; !hidden {
				fields[name] = of
			}
		}
	}
}

func nameOf(f reflect.StructField, tag string) string {
	if tag != "" {
		return tag
	}
	return f.Name
}
