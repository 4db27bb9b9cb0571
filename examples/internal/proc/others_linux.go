package proc

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// othersIn says whether anybody in the group runs whose first process has ended
// and was not waited for. The kernel's own answer (kill with signal 0) counts that
// one too.
func othersIn(pgid int) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // it ended just now
		}
		// pid (name) state ppid pgrp …, and the name may hold anything.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) > 2 && fields[2] == strconv.Itoa(pgid) && fields[0] != "Z" && fields[0] != "X" {
			return true
		}
	}
	return false
}
