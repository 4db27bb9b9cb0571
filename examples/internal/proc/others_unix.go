//go:build unix && !linux

package proc

import (
	"os/exec"
	"strconv"
	"strings"
)

// othersIn says whether anybody in the group runs whose first process has ended
// and was not waited for.
func othersIn(pgid int) bool {
	out, _ := exec.Command("ps", "-A", "-o", "pgid=,stat=").Output()
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == strconv.Itoa(pgid) && f[1][0] != 'Z' {
			return true
		}
	}
	return false
}
