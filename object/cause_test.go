package object_test

import (
	"encoding/json"
	"testing"

	"github.com/homeostat/homeostat/object"
)

func TestCause_Text(t *testing.T) {
	names := map[object.Cause]string{
		0:              "unknown",
		object.Initial: "initial",
		object.Watched: "watched",
		object.Relist:  "relist",
		object.Resync:  "resync",
		object.Audit:   "audit",
	}
	for c, want := range names {
		t.Run(want, func(t *testing.T) {
			if got := c.String(); got != want {
				t.Errorf("String() = %q, want %q", got, want)
			}
			data, err := json.Marshal(c)
			if err != nil || string(data) != `"`+want+`"` {
				t.Errorf("JSON is %s, %v; want the name", data, err)
			}
			back := object.Cause(99)
			if err := json.Unmarshal(data, &back); err != nil || back != c {
				t.Errorf("JSON %s comes back as %v, %v", data, back, err)
			}
		})
	}
	if got := object.Cause(200).String(); got != "Cause(200)" {
		t.Errorf("got %q, want Cause(200)", got)
	}
	c := object.Relist
	if err := c.UnmarshalText([]byte("Watched")); err == nil || c != object.Relist {
		t.Errorf("an unknown name gave %v, %v; want an error and no change", c, err)
	}
}
