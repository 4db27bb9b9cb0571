package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestItMakesHomesAndEndsWhenAsked(t *testing.T) {
	t.Chdir(t.TempDir())
	done := make(chan struct{})
	go func() { main(); close(done) }()
	require.Eventually(t, func() bool {
		homes, _ := filepath.Glob("homes/*")
		return len(homes) == 2
	}, 20*time.Second, time.Millisecond)
	self, err := os.FindProcess(os.Getpid())
	require.NoError(t, err)
	require.NoError(t, self.Signal(os.Interrupt)) // main listens by now: it runs
	<-done
}

// README shows this program, without its package and imports.
func TestREADMEShowsThisProgram(t *testing.T) {
	program, err := os.ReadFile("main.go")
	require.NoError(t, err)
	_, shown, _ := strings.Cut(string(program), "\n)\n\n")
	require.LessOrEqual(t, strings.Count(shown, "\n"), 30)
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	require.Contains(t, string(readme), "```go\n"+shown+"```\n")
}
