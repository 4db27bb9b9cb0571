//go:build unix

package file_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/homeostat/homeostat/backend/file"
	"github.com/stretchr/testify/require"
)

// To open a pipe for reading would block until somebody writes.
func TestAPipeIsAFaultAndNoTrap(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "a.yaml"), 0o644))
	src := newSource(t, dir, quick())
	require.Empty(t, list(t, src))
	require.ErrorIs(t, faults(t, src, 1)[0], file.ErrInvalid)
}
