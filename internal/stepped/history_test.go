package stepped_test

import (
	"testing"

	"github.com/homeostat/homeostat/internal/stepped"
)

func TestHistories(t *testing.T) {
	n := uint64(2000)
	for seed := range n {
		stepped.Run(t, stepped.Config{Seed: seed + 1})
	}
}
