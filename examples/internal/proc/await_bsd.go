//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package proc

import "syscall"

// awaitExit returns once the child pid has ended, and leaves it to be waited for:
// until then its number, and that of its group, belong to nobody else.
func awaitExit(pid int) {
	kq, err := syscall.Kqueue()
	if err != nil {
		return
	}
	defer syscall.Close(kq)
	watch := make([]syscall.Kevent_t, 1)
	syscall.SetKevent(&watch[0], pid, syscall.EVFILT_PROC, syscall.EV_ADD|syscall.EV_ONESHOT)
	watch[0].Fflags = syscall.NOTE_EXIT
	for {
		// A child that has ended already is no process to watch: an error, and the answer.
		if _, err := syscall.Kevent(kq, watch, make([]syscall.Kevent_t, 1), nil); err != syscall.EINTR {
			return
		}
	}
}
