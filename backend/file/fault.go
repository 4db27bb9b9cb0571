package file

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// What can be at fault with a file. A fault that matches none of these comes from
// the file system.
var (
	// ErrSyntax: not YAML, not JSON.
	ErrSyntax = errors.New("syntax")
	// ErrInvalid: an object that is not of the type, has no key, or does not
	// validate.
	ErrInvalid = errors.New("invalid")
	// ErrDuplicate: another object has the same key.
	ErrDuplicate = errors.New("duplicate key")
	// ErrEmpty: the file holds nothing, perhaps only for the moment.
	ErrEmpty = errors.New("empty file")
	// ErrTooLarge: the file is larger than Options.MaxSize.
	ErrTooLarge = errors.New("file too large")
)

// PanicError is a panic of the type's own code (UnmarshalJSON, Validate, the key
// function) over one file. The log has the stack.
type PanicError struct {
	Value any
	Stack []byte
}

// Error says what was panicked with. It leaves out the stack, which differs from
// one time to the next.
func (e *PanicError) Error() string { return fmt.Sprintf("the type's own code panicked: %v", e.Value) }

// Is: a file over which the type's own code panics is invalid.
func (e *PanicError) Is(target error) bool { return target == ErrInvalid }

// Fault is what is wrong with one file, and since when. What the file said last,
// when it was good, remains in force. It is an error that wraps Err.
type Fault struct {
	File  string // as a path that begins with the folder's
	Line  int    // 1 is the first; 0 when the fault is no line's
	Err   error
	Since time.Time
}

// Error names file, line and what is wrong: "manifests/web.yaml:7: …".
func (f Fault) Error() string {
	if f.Line > 0 {
		return fmt.Sprintf("%s:%d: %v", f.File, f.Line, f.Err)
	}
	return fmt.Sprintf("%s: %v", f.File, f.Err)
}

// Unwrap gives Err.
func (f Fault) Unwrap() error { return f.Err }

// MarshalJSON prints Err as text.
func (f Fault) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		File  string    `json:"file"`
		Line  int       `json:"line,omitempty"`
		Err   string    `json:"error"`
		Since time.Time `json:"since"`
	}{f.File, f.Line, f.Err.Error(), f.Since})
}

// lineError is a fault before it is known whose.
type lineError struct {
	line int
	err  error
}

func (e *lineError) Error() string { return fmt.Sprintf("line %d: %v", e.line, e.err) }
func (e *lineError) Unwrap() error { return e.err }

func atLine(line int, kind error, format string, args ...any) error {
	return &lineError{line, fmt.Errorf("%w: %s", kind, fmt.Sprintf(format, args...))}
}
