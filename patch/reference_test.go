package patch_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The reference: the rules once more, written as plainly as can be, on what
// encoding/json decodes into. The package is compared with it.

// decode reads one JSON value; numbers keep their text.
func decode(t testing.TB, text []byte) any {
	t.Helper()
	v, err := tryDecode(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func tryDecode(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, errors.New("more than one value")
	}
	return v, nil
}

func encode(t testing.TB, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// refEqual compares as the corpora ask for: integers exactly, all else as
// float64.
func refEqual(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for name, x := range a {
			if y, ok := b[name]; !ok || !refEqual(x, y) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, refEqual)
	case json.Number:
		b, ok := b.(json.Number)
		if !ok {
			return false
		}
		x, isX := new(big.Int).SetString(string(a), 10)
		y, isY := new(big.Int).SetString(string(b), 10)
		if isX && isY {
			return x.Cmp(y) == 0
		}
		f, errF := a.Float64()
		g, errG := b.Float64()
		return f == g && errF == nil && errG == nil
	}
	return a == b
}

// refMerge is the pseudocode of RFC 7386, section 2.
func refMerge(target, patch any) any {
	members, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	out := map[string]any{}
	if old, ok := target.(map[string]any); ok {
		for name, v := range old {
			out[name] = v
		}
	}
	for name, v := range members {
		if v == nil {
			delete(out, name)
		} else {
			out[name] = refMerge(out[name], v)
		}
	}
	return out
}

// refRepresentable says whether a merge patch can lead from one value to another.
func refRepresentable(from, to any) bool {
	members, ok := to.(map[string]any)
	if !ok {
		return true
	}
	old, _ := from.(map[string]any)
	for name, v := range members {
		was, had := old[name]
		if v == nil {
			if !had || was != nil {
				return false
			}
		} else if !refRepresentable(was, v) {
			return false
		}
	}
	return true
}

var (
	errRefPatch = errors.New("bad patch")
	errRefPath  = errors.New("path")
	errRefTest  = errors.New("test failed")
)

// refJSONPatch applies a JSON patch to a copy of doc.
func refJSONPatch(doc, patch any) (any, error) {
	ops, ok := patch.([]any)
	if !ok {
		return nil, errRefPatch
	}
	for _, op := range ops {
		if err := refCheckOp(op); err != nil {
			return nil, err
		}
	}
	doc = refCopy(doc)
	for i, op := range ops {
		var err error
		if doc, err = refDo(doc, op.(map[string]any)); err != nil {
			return nil, fmt.Errorf("operation %d: %w", i, err)
		}
	}
	return doc, nil
}

func refCheckOp(op any) error {
	o, ok := op.(map[string]any)
	if !ok {
		return errRefPatch
	}
	need := map[string][]string{
		"add": {"path", "value"}, "replace": {"path", "value"}, "test": {"path", "value"},
		"remove": {"path"}, "move": {"path", "from"}, "copy": {"path", "from"},
	}
	verb, _ := o["op"].(string)
	members, ok := need[verb]
	if !ok {
		return errRefPatch
	}
	for _, name := range members {
		v, ok := o[name]
		if !ok {
			return errRefPatch
		}
		if name == "value" {
			continue
		}
		s, ok := v.(string)
		if !ok {
			return errRefPatch
		}
		if _, err := refTokens(s); err != nil {
			return err
		}
	}
	return nil
}

func refTokens(s string) ([]string, error) {
	if s == "" {
		return nil, nil
	}
	if !strings.HasPrefix(s, "/") {
		return nil, errRefPatch
	}
	bare := strings.NewReplacer("~0", "", "~1", "").Replace(s)
	if strings.Contains(bare, "~") {
		return nil, errRefPatch
	}
	tokens := strings.Split(s[1:], "/")
	for i := range tokens {
		tokens[i] = strings.NewReplacer("~0", "~", "~1", "/").Replace(tokens[i])
	}
	return tokens, nil
}

func refDo(doc any, op map[string]any) (any, error) {
	path, _ := refTokens(op["path"].(string))
	switch op["op"] {
	case "add":
		return refAdd(doc, path, refCopy(op["value"]))
	case "remove":
		doc, _, err := refRemove(doc, path)
		return doc, err
	case "replace":
		if len(path) == 0 {
			return refCopy(op["value"]), nil
		}
		doc, _, err := refRemove(doc, path)
		if err != nil {
			return nil, err
		}
		return refAdd(doc, path, refCopy(op["value"]))
	case "test":
		v, err := refGet(doc, path)
		if err != nil {
			return nil, err
		}
		if !refEqual(v, op["value"]) {
			return nil, errRefTest
		}
		return doc, nil
	}
	from, _ := refTokens(op["from"].(string))
	v, err := refGet(doc, from)
	if err != nil {
		return nil, err
	}
	if op["op"] == "copy" {
		return refAdd(doc, path, refCopy(v))
	}
	if len(from) == 0 {
		return nil, errRefPath
	}
	if slices.Equal(from, path) {
		return doc, nil
	}
	if len(from) < len(path) && slices.Equal(from, path[:len(from)]) {
		return nil, errRefPath
	}
	if doc, _, err = refRemove(doc, from); err != nil {
		return nil, err
	}
	return refAdd(doc, path, v)
}

func refGet(doc any, path []string) (any, error) {
	for _, token := range path {
		switch v := doc.(type) {
		case map[string]any:
			member, ok := v[token]
			if !ok {
				return nil, errRefPath
			}
			doc = member
		case []any:
			i, err := refIndex(token, len(v)-1)
			if err != nil {
				return nil, err
			}
			doc = v[i]
		default:
			return nil, errRefPath
		}
	}
	return doc, nil
}

func refIndex(token string, last int) (int, error) {
	i, err := strconv.Atoi(token)
	if err != nil || strconv.Itoa(i) != token || i < 0 || i > last {
		return 0, errRefPath
	}
	return i, nil
}

func refAdd(doc any, path []string, value any) (any, error) {
	if len(path) == 0 {
		return value, nil
	}
	token, rest := path[0], path[1:]
	switch v := doc.(type) {
	case map[string]any:
		if len(rest) > 0 {
			member, ok := v[token]
			if !ok {
				return nil, errRefPath
			}
			var err error
			if value, err = refAdd(member, rest, value); err != nil {
				return nil, err
			}
		}
		v[token] = value
		return v, nil
	case []any:
		if len(rest) > 0 {
			i, err := refIndex(token, len(v)-1)
			if err != nil {
				return nil, err
			}
			v[i], err = refAdd(v[i], rest, value)
			return v, err
		}
		i := len(v)
		if token != "-" {
			var err error
			if i, err = refIndex(token, len(v)); err != nil {
				return nil, err
			}
		}
		return slices.Insert(v, i, value), nil
	}
	return nil, errRefPath
}

func refRemove(doc any, path []string) (after, removed any, err error) {
	if len(path) == 0 {
		return nil, nil, errRefPath
	}
	if removed, err = refGet(doc, path); err != nil {
		return nil, nil, err
	}
	token, rest := path[0], path[1:]
	switch v := doc.(type) {
	case map[string]any:
		if len(rest) == 0 {
			delete(v, token)
		} else {
			v[token], _, err = refRemove(v[token], rest)
		}
		return v, removed, err
	case []any:
		i, _ := strconv.Atoi(token)
		if len(rest) == 0 {
			return slices.Delete(v, i, i+1), removed, nil
		}
		v[i], _, err = refRemove(v[i], rest)
		return v, removed, err
	}
	return nil, nil, errRefPath
}

func refCopy(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, x := range v {
			out[name] = refCopy(x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = refCopy(x)
		}
		return out
	}
	return v
}
