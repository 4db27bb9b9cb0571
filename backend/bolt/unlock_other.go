//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package bolt

import "os"

// unlock has nothing to do where a lock goes with its handle.
func unlock(*os.File) error { return nil }
