package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/homeostat/homeostat/backend/backendtest"
	"github.com/stretchr/testify/require"
)

func guide(t *testing.T) string {
	text, err := os.ReadFile("../../docs/backends.md")
	require.NoError(t, err)
	return string(text)
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
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```\n").FindAllStringSubmatch(guide(t), -1)
	require.NotEmpty(t, blocks)
	for _, block := range blocks {
		require.Contains(t, code.String(), block[1])
	}
}

// Each check that the guide names is one of the kit's.
func TestTheGuideNamesChecks(t *testing.T) {
	known := map[string]bool{}
	for _, c := range backendtest.Checks() {
		known[c.Name] = true
	}
	table := regexp.MustCompile(`(?m)^\|.*\| (.*) \|$`).FindAllStringSubmatch(guide(t), -1)
	named := 0
	for _, row := range table {
		for _, name := range regexp.MustCompile("`([a-z]+/[a-z-]+)`").FindAllStringSubmatch(row[1], -1) {
			named++
			require.True(t, known[name[1]], "there is no check %q", name[1])
		}
	}
	require.Greater(t, named, 20)
}
