//go:build unix

package proc

import (
	"bufio"
	"io"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// guardGrace is how long groups may take to end by themselves once the program
// is gone.
const guardGrace = 2 * time.Second

// guard is the guardian's whole life: it notes the groups it is told of, until
// the pipe ends because the program did, and then ends those that are left.
func guard(notes io.Reader) {
	// What ends the program must not end its guardian first. (A hang-up of the
	// terminal does not come this far: the guardian has a session of its own.)
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)

	groups := map[int]bool{}
	for lines := bufio.NewScanner(notes); lines.Scan(); {
		if lines.Text() == "" {
			continue
		}
		sign, number := lines.Text()[:1], lines.Text()[1:]
		if pgid, err := strconv.Atoi(number); err != nil || pgid <= 1 {
			continue // -0 and -1 would signal far more than a group
		} else if sign == "+" {
			groups[pgid] = true
		} else {
			delete(groups, pgid)
		}
	}
	signalAll(groups, syscall.SIGTERM)
	for end := time.Now().Add(guardGrace); len(groups) > 0 && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
		for pgid := range groups {
			if !groupExists(pgid) {
				delete(groups, pgid)
			}
		}
	}
	signalAll(groups, syscall.SIGKILL)
}

func signalAll(groups map[int]bool, sig syscall.Signal) {
	for pgid := range groups {
		syscall.Kill(-pgid, sig)
		syscall.Kill(-pgid, syscall.SIGCONT) // a stopped process could not take the signal
	}
}

func groupExists(pgid int) bool { return syscall.Kill(-pgid, 0) != syscall.ESRCH }
