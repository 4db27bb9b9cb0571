package homeostat_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestEveryPromiseHasATest reads the promises in doc.go and looks for tests that
// carry their numbers.
func TestEveryPromiseHasATest(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	var tests strings.Builder
	require.NoError(t, filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		text, err := os.ReadFile(file)
		tests.Write(text)
		return err
	}))
	promises := regexp.MustCompile(`(?m)^//   - (G\d+) `).FindAllStringSubmatch(string(doc), -1)
	require.GreaterOrEqual(t, len(promises), 10)
	for _, promise := range promises {
		require.True(t, strings.Contains(tests.String(), "func Test"+promise[1]+"_"), "no test proves %s", promise[1])
	}
}
