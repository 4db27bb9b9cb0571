//go:build unix

// Package proctest lets tests look at the operating system's processes.
package proctest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// Process is one process that runs.
type Process struct {
	PID, PPID, PGID int
	Args            string
}

// Running lists all processes that run. Zombies do not: where the machine's first
// process does not reap them, orphans stay zombies for ever.
func Running() []Process {
	if runtime.GOOS == "linux" {
		return fromProc()
	}
	return fromPS()
}

// fromProc needs no program: small machines have no ps.
func fromProc() (all []Process) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		stat, err := os.ReadFile(dir + "/stat")
		if err != nil {
			continue // it ended just now
		}
		args, _ := os.ReadFile(dir + "/cmdline")
		// pid (name) state ppid pgrp …, and the name may hold anything.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) < 3 || strings.ContainsAny(fields[0], "ZX") {
			continue
		}
		all = append(all, Process{
			PID:  number(filepath.Base(dir)),
			PPID: number(fields[1]),
			PGID: number(fields[2]),
			Args: strings.TrimSpace(strings.ReplaceAll(string(args), "\x00", " ")),
		})
	}
	return all
}

func fromPS() (all []Process) {
	out, err := exec.Command("ps", "-A", "-ww", "-o", "pid=,ppid=,pgid=,stat=,args=").Output()
	if err != nil {
		panic(fmt.Sprintf("ps: %v", err))
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) < 5 || f[3][0] == 'Z' {
			continue
		}
		all = append(all, Process{number(f[0]), number(f[1]), number(f[2]), strings.Join(f[4:], " ")})
	}
	return all
}

func number(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}
