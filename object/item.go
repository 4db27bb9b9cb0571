package object

// Version is an object's own version, opaque to everybody but its store. It
// says which state of the object this is; it is never a place in a history to
// resume from (that is reflector.Cursor).
type Version string

// Any, as the precondition of a write, means "whatever it is now" (If-Match: *).
// The empty Version is no precondition at all but an error: a forgotten version
// must not overwrite somebody else's write.
const Any Version = "*"

// Item is one object as its store holds it.
type Item[T any] struct {
	// Key names the object within its store. Opaque to this library; see [Key]
	// for a way to make one of several parts.
	Key string
	// Version is the state that Object is. Empty when the store has no versions.
	Version Version
	// ID tells an object from a later one under the same key: another ID is a
	// delete and a create. Empty when the store cannot tell.
	ID string
	// Object is the state itself.
	Object T
}
