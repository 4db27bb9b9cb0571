package patch

import (
	"errors"
	"fmt"
	"strings"
)

// What can be wrong with a patch or a document, found where it is made.
var (
	// ErrInvalidJSON: the text is not one JSON value in UTF-8. A *SyntaxError
	// says where.
	ErrInvalidJSON = errors.New("patch: invalid JSON")
	// ErrBadPatch: JSON, but no JSON patch: no list of operations, an unknown or
	// incomplete operation, or a path that is no JSON pointer.
	ErrBadPatch = errors.New("patch: malformed patch")
	// ErrTooLarge: one of the limits of this package, [MaxDepth], [MaxOps] or
	// [MaxCopied], would be passed.
	ErrTooLarge = errors.New("patch: beyond a limit")
)

// Why a sound patch can't be applied to this document.
var (
	// ErrPath: an operation's path or from leads nowhere in the document.
	ErrPath = errors.New("patch: path leads nowhere")
	// ErrTestFailed: a test operation found another value.
	ErrTestFailed = errors.New("patch: test failed")
	// ErrWrongType: the patched document does not fit the Go type asked for, or
	// the Go value has no JSON form.
	ErrWrongType = errors.New("patch: does not fit the Go type")
)

// ErrNotRepresentable: a merge patch can't lead from the one document to the
// other, because a null that it would have to set means "delete" in it.
// [JSONBetween] can.
var ErrNotRepresentable = errors.New("patch: not representable as a merge patch")

// Error says which operation failed, and where. It matches what it wraps:
// decide by errors.Is and the sentinels of this package.
type Error struct {
	// Op is the operation's index in its JSON patch, counted from 0; -1 when
	// this is not about one operation.
	Op int
	// Verb is the operation's name, such as "add"; empty without one.
	Verb string
	// Path is the place in the document that this is about: empty for the whole
	// document, nil when no place is known.
	Path Path
	// Err says what is wrong, and wraps one of the sentinels.
	Err error
}

// Error names operation, path and cause. Long paths are cut: they may come from
// a stranger.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("patch: ")
	if e.Op >= 0 {
		fmt.Fprintf(&b, "operation %d: ", e.Op)
	}
	if e.Verb != "" {
		b.WriteString(e.Verb + ": ")
	}
	if e.Path != nil {
		b.WriteString(clip(e.Path.String()) + ": ")
	}
	b.WriteString(strings.TrimPrefix(e.Err.Error(), "patch: "))
	return b.String()
}

// Unwrap gives Err.
func (e *Error) Unwrap() error { return e.Err }

// SyntaxError is an ErrInvalidJSON with its place.
type SyntaxError struct {
	// Offset is the index of the first byte that can't belong to a JSON value;
	// the length of the text when it ends too early.
	Offset int
	// Reason says what is wrong there.
	Reason string
}

// Error names offset and reason.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%v at byte %d: %s", ErrInvalidJSON, e.Offset, e.Reason)
}

// Unwrap gives ErrInvalidJSON.
func (e *SyntaxError) Unwrap() error { return ErrInvalidJSON }

// clip quotes s for a message and bounds its length.
func clip(s string) string {
	const most = 160
	if len(s) > most {
		return fmt.Sprintf("%q… (%d bytes)", s[:most], len(s))
	}
	return fmt.Sprintf("%q", s)
}
