// Package patch makes and applies changes to JSON documents: JSON merge patch
// (RFC 7386) and JSON patch (RFC 6902). It works on bytes. What a patch does not
// name comes out as it went in, byte for byte.
//
// # Usage
//
// [Merge] and [JSON] read a patch; [MergeBetween] and [JSONBetween] make one by
// comparing two documents, [Between] by comparing two Go values. A [Patch] is
// then applied to a document with its Apply, or to a Go value with [Into].
//
//	p, err := patch.Merge([]byte(`{"spec":{"replicas":3}}`))
//	if err != nil {
//		return err
//	}
//	doc, err = p.Apply(doc)
//
// A merge patch reads well and changes objects member by member, but it can't
// set a member to null, can't change one element of a list, and checks nothing.
// A JSON patch can do all of that. [IsEmpty] tells when there is nothing to write.
//
// # Exactness
//
//   - Numbers keep their text, whatever their size: nothing becomes a float64
//     on the way.
//   - null, an absent member, {} and [] are four different things. None of them
//     turns into another unless the patch says so.
//   - Members keep their order; new ones go to the end. White space stays, also
//     around the document; new members and elements begin as their neighbours do.
//   - Names are compared by what they stand for ("\u0061" is "a"), and kept as they
//     are written. They may be empty and hold any character, / and ~ included,
//     half a surrogate pair too.
//   - If members of one object share a name, the last one counts. A member that
//     the patch names is there once afterwards; other duplicates stay.
//   - Two numbers are equal if both are integers, of any size, and the same
//     one; or, where one is written otherwise, if they are the same float64: 1
//     and 1.0 and 1e0 are equal, 9007199254740992 and 9007199254740993 are not.
//     Beyond the range of float64 they are compared as decimals. Test operations
//     and the patches made by comparing go by this one rule; so a patch made
//     from 1 to 1.0 is empty.
//
// # Concurrency
//
// All functions may be called at once. A Patch is never changed after it was
// made, and may be applied by many goroutines at once. Arguments are neither
// changed nor kept; answers share no memory with them.
//
// # Errors
//
// Every error matches a sentinel of this package: [ErrInvalidJSON],
// [ErrBadPatch] and [ErrTooLarge] for what can't be read, [ErrPath] and
// [ErrTestFailed] for what does not go with the document, [ErrWrongType] for
// what does not go with the Go type, [ErrNotRepresentable] for what a merge patch
// can't say. An [*Error] names operation and path, a [*SyntaxError] the offset.
// With an error there is no other answer: a patch is applied in full or not at
// all. Nothing panics on data.
//
// # Limits
//
// [MaxDepth], [MaxOps] and [MaxCopied] bound what a stranger's patch can cost
// beyond its own size. An index beyond a list's end is an error, never padding.
//
// # Testing
//
// The rules are checked against the corpora in testdata, and against a second
// implementation in the tests that works on maps, over random documents and by
// fuzzing. The public suite of RFC 6902 is run where JSON_PATCH_TESTS names a
// folder that holds it.
package patch
