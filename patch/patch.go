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

// IsEmpty says that p is known to change no document at all, so that there is
// nothing to write: a merge patch {}, a JSON patch without operations, and
// whatever [Between], [MergeBetween] or [JSONBetween] made of equal values.
// (One empty patch has a text that is not: for equal documents that are no
// objects, there is no merge patch but the document itself.)
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
