//go:build unix

package proc

import (
	"os"
	"syscall"
)

// What a gate inherits beside the standard streams.
const (
	gateGo     = 3 // one byte: the guardian knows this group
	gateFailed = 4 // the reason when exec fails; closed by an exec that succeeds
)

// gate waits until it is let through and becomes the command. It returns only
// when there is no command to become.
func gate(path string, argv []string) int {
	syscall.CloseOnExec(gateGo)
	syscall.CloseOnExec(gateFailed)
	if n, err := os.NewFile(gateGo, "go").Read(make([]byte, 1)); n != 1 || err != nil {
		return 1 // the program is gone
	}
	err := syscall.Exec(path, argv, os.Environ())
	os.NewFile(gateFailed, "failed").WriteString(err.Error())
	return 127
}
