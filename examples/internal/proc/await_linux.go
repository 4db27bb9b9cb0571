package proc

import "golang.org/x/sys/unix"

// awaitExit returns once the child pid has ended, and leaves it to be waited for:
// until then its number, and that of its group, belong to nobody else.
func awaitExit(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return
		}
	}
}
