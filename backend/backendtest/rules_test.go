package backendtest_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/homeostat/homeostat/backend/backendtest"
)

// rules reads the numbered rules below a heading of a package's documentation.
func rules(t *testing.T, file, heading, name string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "\n// # "+heading+"\n")
	require.True(t, found, "%s has no section %q", file, heading)
	section, _, _ = strings.Cut(section, "\n// # ")
	var all []string
	for _, m := range regexp.MustCompile(`(?m)^//  (\d+)\. `).FindAllStringSubmatch(section, -1) {
		all = append(all, name+" "+m[1])
	}
	return all
}

// TestEveryRuleHasACheck: and every rule that a check names is there.
func TestEveryRuleHasACheck(t *testing.T) {
	all := slices.Concat(
		rules(t, "../../reflector/doc.go", "Rules for sources", "reflector"),
		rules(t, "../doc.go", "The rules of the write side", "backend"),
		rules(t, "../doc.go", "The rules of soft deletion", "backend soft"),
	)
	require.Len(t, all, 10+13+6)
	named := map[string]bool{}
	for _, c := range backendtest.Checks() {
		require.NotEmpty(t, c.Rules, c.Name)
		require.NotEmpty(t, c.What, c.Name)
		for _, rule := range c.Rules {
			require.Contains(t, all, rule, c.Name)
			named[rule] = true
		}
	}
	for _, rule := range all {
		require.True(t, named[rule], "no check is made for %s", rule)
	}
}

func TestCheckNamesAreTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range backendtest.Checks() {
		require.False(t, seen[c.Name], c.Name)
		seen[c.Name] = true
	}
}
