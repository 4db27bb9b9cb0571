package patch

// Media types of the patches that this package makes, as HTTP names them.
const (
	MergeMediaType = "application/merge-patch+json" // RFC 7386
	JSONMediaType  = "application/json-patch+json"  // RFC 6902
)

// Patch is a change to a JSON document. A Patch never changes: it may be used
// any number of times and by many goroutines at once.
type Patch interface {
	// Apply gives the changed document. doc is neither changed nor kept, and the
	// answer shares no memory with it. With an error the answer is nil: there
	// are no half-applied patches.
	Apply(doc []byte) ([]byte, error)
	// MediaType names the format of MarshalJSON, for the Content-Type of a request.
	MediaType() string
	// MarshalJSON gives the patch itself. The bytes belong to the caller.
	MarshalJSON() ([]byte, error)
}

// IsEmpty says that there is nothing to write: p is a merge patch {}, a JSON
// patch without operations, or what [Between], [MergeBetween] or [JSONBetween]
// made of equal values. (Equal values that are no objects have an empty merge
// patch too, but its text is the value. And {}, as RFC 7386 has it, does turn a
// document that is no object into one.)
//
// It is false for a patch that happens to change nothing of one document, and
// for other implementations of Patch unless they have a method IsEmpty() bool.
// A nil Patch is empty.
func IsEmpty(p Patch) bool {
	if p == nil {
		return true
	}
	e, ok := p.(interface{ IsEmpty() bool })
	return ok && e.IsEmpty()
}
