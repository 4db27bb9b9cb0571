package backendtest_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/homeostat/homeostat/backend/backendtest"
	"github.com/homeostat/homeostat/backend/memory"
	"github.com/homeostat/homeostat/object"
)

// thing is what the stores of these tests hold.
type thing struct {
	object.Meta `json:"meta,omitzero"`
	N           int               `json:"n,omitempty"`
	Text        string            `json:"text,omitempty"`
	Tags        map[string]string `json:"tags,omitempty"`
}

func things(n int) thing { return thing{N: n + 1, Text: string(rune('a' + n%26))} }

func memoryHarness() backendtest.Harness[thing] {
	return backendtest.Harness[thing]{
		New: func(context.Context) (*backendtest.Fixture[thing], error) {
			s := memory.New[thing](nil)
			return &backendtest.Fixture[thing]{
				Source:  s,
				Compact: func(context.Context) error { s.Compact(); return nil },
			}, nil
		},
		Object: things,
	}
}

func TestMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := backendtest.Run(t.Context(), memoryHarness())
		t.Log(r)
		if r.Err() != nil {
			t.Error("not all is well")
		}
	})
}

func TestMemoryInRealTime(t *testing.T) {
	t.Parallel()
	backendtest.Test(t, memoryHarness())
}
