package bolt_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain is also the process that kill tests kill.
func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		fmt.Fprintln(os.Stderr, child(path))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}
