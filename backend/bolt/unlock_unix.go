//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package bolt

import (
	"os"
	"syscall"
)

// unlock gives up bbolt's lock on a file that it left open and mapped when it
// panicked: the mapping would keep the lock after the file is closed.
func unlock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
