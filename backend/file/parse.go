package file

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"runtime/debug"

	"github.com/homeostat/homeostat/object"
)

// document is one document of a file as JSON, and where its parts stood.
type document struct {
	json   []byte
	line   int                     // where it begins
	lineAt func(offset int) int    // of a place in json
	lineOf func(member string) int // of the first member of that name
}

// entry is one object of a file.
type entry[T any] struct {
	item object.Item[T]
	line int
}

// parse makes objects of a file's content: all, or an error that is a *lineError
// where a line is known.
func parse[T any](name string, content []byte, key func(T) string) ([]entry[T], error) {
	if len(content) == 0 {
		return nil, ErrEmpty
	}
	split := splitYAML
	if filepath.Ext(name) == ".json" {
		split = splitJSON
	}
	documents, err := split(content)
	if err != nil {
		return nil, err
	}
	entries := make([]entry[T], 0, len(documents))
	for _, doc := range documents {
		obj, err := decode[T](doc)
		if err != nil {
			return nil, err
		}
		k, err := check(obj, key)
		if err != nil {
			return nil, atLine(doc.line, ErrInvalid, "%v", err)
		}
		entries = append(entries, entry[T]{
			item: object.Item[T]{Key: k, Version: versionOf(obj, doc.json), Object: obj},
			line: doc.line,
		})
	}
	return entries, nil
}

// versionOf is a digest of what an object is, not of how it was written down.
func versionOf[T any](obj T, text []byte) object.Version {
	if encoded, err := json.Marshal(obj); err == nil {
		text = encoded
	}
	digest := sha256.Sum256(text)
	return object.Version(hex.EncodeToString(digest[:12]))
}

// decode is strict: in a file written by hand, a member that the type does not
// have is a misspelling.
func decode[T any](doc document) (obj T, err error) {
	d := json.NewDecoder(bytes.NewReader(doc.json))
	d.DisallowUnknownFields()
	err = d.Decode(&obj)
	if err == nil {
		return obj, nil
	}
	line := doc.line
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) {
		line = doc.lineAt(int(wrongType.Offset) - 1)
		err = fmt.Errorf("%s: a %s cannot be a %s", wrongType.Field, wrongType.Value, wrongType.Type)
	} else if m := unknownField.FindStringSubmatch(err.Error()); m != nil {
		line = doc.lineOf(m[1])
		err = fmt.Errorf("unknown member %q", m[1])
	}
	return obj, atLine(line, ErrInvalid, "%v", err)
}

// encoding/json has no type for this error.
var unknownField = regexp.MustCompile(`unknown field "(.*)"`)

// check asks the type's own code, whose panics are faults of the file too.
func check[T any](obj T, key func(T) string) (k string, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the type's own code panicked: %v\n%s", v, debug.Stack())
		}
	}()
	if v, ok := any(obj).(interface{ Validate() error }); ok {
		err = v.Validate()
	} else if v, ok := any(&obj).(interface{ Validate() error }); ok {
		err = v.Validate()
	}
	if err != nil {
		return "", err
	}
	if k = key(obj); k == "" {
		return "", errors.New("the object has no key")
	}
	return k, nil
}
