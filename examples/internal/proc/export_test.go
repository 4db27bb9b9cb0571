//go:build unix

package proc

import "os"

// Guard is a guardian's life.
var Guard = guard

// Tap puts a file in the place of the pipe to the guardian.
func Tap(k *Keeper, f *os.File) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.notes.Close()
	k.notes = f
}
