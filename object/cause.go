package object

import "fmt"

// Cause says why something is looked at again.
type Cause uint8

// The causes. Zero is none: "not told".
const (
	Initial Cause = iota + 1 // part of the first list
	Watched                  // a watch said so
	Relist                   // a later list found it
	Resync                   // nothing changed, look anyway
	Audit                    // an audit found that the watch had lost it
)

var causeNames = [...]string{"unknown", "initial", "watched", "relist", "resync", "audit"}

// String gives the cause's name in lower case: "initial", "watched", "relist",
// "resync", "audit"; "unknown" for the zero value.
func (c Cause) String() string {
	if int(c) < len(causeNames) {
		return causeNames[c]
	}
	return fmt.Sprintf("Cause(%d)", uint8(c))
}

// MarshalText is String: a cause reads as its name in JSON and in logs.
func (c Cause) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (c *Cause) UnmarshalText(text []byte) error {
	for i, name := range causeNames {
		if name == string(text) {
			*c = Cause(i)
			return nil
		}
	}
	return fmt.Errorf("object: no cause is called %q", text)
}
