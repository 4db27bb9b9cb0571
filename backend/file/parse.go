package file

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime/debug"
	"strings"

	"github.com/homeostat/homeostat/object"
)

// document is one document of a file as JSON, and where its parts stood.
type document struct {
	json   []byte
	line   int                  // where it begins
	lineAt func(offset int) int // of a place in json
}

// entry is one object of a file.
type entry[T any] struct {
	item object.Item[T]
	line int
}

// parse makes objects of a file's content: all, or an error that is a *lineError
// where a line is known. A panic of the type's own code is an error of the file.
func parse[T any](name string, content []byte, key func(T) string) (entries []entry[T], err error) {
	line := 0
	defer func() {
		if v := recover(); v != nil {
			entries, err = nil, &lineError{line, &PanicError{v, debug.Stack()}}
		}
	}()
	content = bytes.TrimPrefix(content, []byte("\xef\xbb\xbf")) // what some editors begin a file with
	split := splitYAML
	if ending(name) == ".json" {
		split = splitJSON
	}
	documents, err := split(content)
	if err != nil {
		return nil, err
	}
	if len(documents) == 0 && !(ending(name) != ".json" && wholeComment.Match(content)) {
		return nil, ErrEmpty
	}
	for _, doc := range documents {
		line = doc.line
		obj, err := decode[T](doc)
		if err != nil {
			return nil, err
		}
		if v, ok := any(obj).(validator); ok {
			err = v.Validate()
		} else if v, ok := any(&obj).(validator); ok {
			err = v.Validate()
		}
		k := ""
		if err == nil {
			if k = key(obj); k == "" {
				err = errors.New("the object has no key")
			}
		}
		if err != nil {
			return nil, &lineError{line, fmt.Errorf("%w: %w", ErrInvalid, err)}
		}
		entries = append(entries, entry[T]{
			item: object.Item[T]{Key: k, Version: versionOf(obj, doc.json), Object: obj},
			line: line,
		})
	}
	return entries, nil
}

type validator interface{ Validate() error }

func ending(name string) string { return strings.ToLower(filepath.Ext(name)) }

// A file that holds nothing and means it has a comment, whole to the end of its line.
var wholeComment = regexp.MustCompile(`(?m)^[ \t]*#.*\n`)

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
	if err := checkMembers(doc, reflect.TypeFor[T]()); err != nil {
		return obj, err
	}
	err = json.Unmarshal(doc.json, &obj)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		what := fmt.Sprintf("%s where %s is wanted", wrong.Value, wrong.Type)
		return obj, atLine(doc.lineAt(int(wrong.Offset)-1), ErrInvalid, "%s%s", prefix(wrong.Field), what)
	}
	if err != nil {
		return obj, atLine(doc.line, ErrInvalid, "%v", err)
	}
	return obj, nil
}
