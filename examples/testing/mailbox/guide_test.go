package mailbox_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/fake"
	"github.com/stretchr/testify/require"
)

// blocks are the code blocks of the guide in one language.
func blocks(t *testing.T, language string) []string {
	guide, err := os.ReadFile("../../../docs/testing.md")
	require.NoError(t, err)
	var all []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```\n").FindAllStringSubmatch(string(guide), -1) {
		all = append(all, m[1])
	}
	require.NotEmpty(t, all)
	return all
}

// What the guide shows is what runs.
func TestTheGuideShowsThisCode(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var code strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		code.Write(text)
	}
	for _, block := range blocks(t, "go") {
		require.Contains(t, code.String(), block)
	}
}

func TestTheGuideShowsThisLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.boxes.SetPlan(fake.Plan{Faults: []fake.Fault{
			{On: fake.Create, Do: fake.FailAfterCommit, Call: 1},
		}})
		w.declare(t, "ann", 1)
		w.run(t)
		synctest.Wait()
		w.declare(t, "ann", 2)
		time.Sleep(time.Minute)
		synctest.Wait()
		_, err := w.boxes.Get(t.Context(), "ann")
		require.NoError(t, err)
		var log strings.Builder
		for _, call := range w.boxes.Log() {
			log.WriteString(call.String() + "\n")
		}
		require.Equal(t, blocks(t, "text"), []string{log.String()})
	})
}
