package patch

import "fmt"

// Limits that keep a stranger's patch or document from costing more than its
// own size is worth. Passing one is [ErrTooLarge]. No index of a list ever
// allocates: one beyond the list's end is [ErrPath].
const (
	// MaxDepth is how many lists and objects may lie within each other, in a
	// document, in a patch, and in whatever a patch makes of a document.
	MaxDepth = 1000
	// MaxOps is how many operations a JSON patch may have.
	MaxOps = 10_000
	// MaxCopied is how many bytes the copy operations of one JSON patch may add
	// to one document, in all: each copy can double it. Where a document is near
	// MaxDepth, what is moved counts too.
	MaxCopied = 8 << 20
)

func errTooDeep() error {
	return fmt.Errorf("%w: more than %d lists and objects within each other", ErrTooLarge, MaxDepth)
}
