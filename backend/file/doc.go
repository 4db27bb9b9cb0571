// Package file is a source over a folder of manifests: objects written down in
// YAML or JSON files, by people or by whoever mounts the folder.
//
// # Usage
//
//	src, err := file.New("manifests", (*App).Key, nil)
//	apps := informer.New(src, nil)
//
// Every file of the folder itself whose name ends in .yaml, .yml or .json and does
// not begin with a dot is read; folders below it are not. A file holds any number
// of documents (YAML: between lines of "---"; JSON: one after the other), each an
// object: it is decoded by encoding/json, by the type's json tags. A member that the
// type does not have, or has in other letters, or that stands twice, is an error,
// since in a file written by hand it is a misspelling. A type with a method
// Validate() error is asked. YAML is read as JSON would be: keys are strings, numbers
// that JSON could write keep their digits (others, as 0x1F, 1_000 or 010, which is
// eight, are what YAML reads in them), and a date is the text that stands there.
//
// # Faults
//
// What cannot be read or understood is never taken for absence. A file at fault
// (unreadable, half written, not YAML, not the type, not valid) keeps the objects
// that it had when it was last good, all of them; a fault is told by [Source.Faults]
// and once in the log, with file and line, and heals by itself with the file. So
// is a file that holds nothing: it is what an editor leaves for a moment when it
// writes in place. (A YAML file that shall hold nothing can hold a comment.) A file
// that is gone is in force for ten times [Options.Settle] more, for those who replace
// a file by taking the old one away first. Of objects under the same key the one that
// was there first stays, at the beginning the one in the file whose name comes first,
// and the fault names both files. The folder itself unreadable or gone is an error
// of List and Watch, which its consumer tries again after its own backoff.
//
// A file that can be opened but whose reading never ends, as on a network file system
// that has gone, holds up the source, though nobody who is called off.
//
// # Ordering and delivery
//
// Changes are seen by a watch on the folder, which sees files replaced by rename
// and folders swapped behind a symbolic link (as mounted config maps are), and
// does not lose sight as a watch on a file would. A change is read once the folder
// has been quiet for [Options.Settle]. Every [Options.Poll] the folder is looked at
// in any case, also where no watch can be had at all: network file systems tell
// nothing, and what a link points to may change where no watch is. A file whose size and time are as they were is not
// read again.
//
// The source has no positions: a session begins with the full state, and so does
// each change (the consumer's diff finds what it was). An object's version is a
// digest of its content, so that what was only moved or reformatted is no change.
// There are no IDs: a file deleted and written again is the same object.
//
// # Concurrency
//
// A [Source] may be listed and watched by any number of consumers at once; they
// share what was read. Objects behind pointers are shared, too: do not change them.
package file
