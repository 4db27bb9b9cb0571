//go:build unix

// Package proc runs commands as process groups that never outlive the program
// that started them, however that program ends.
//
// # Usage
//
//	func main() {
//		proc.Main() // first of all: this binary is also its own helper
//		keeper, err := proc.NewKeeper()
//		...
//		defer keeper.Close()
//		group, err := keeper.Start(ctx, proc.Command{Path: "sleep", Args: []string{"60"}})
//		...
//		group.Stop(5 * time.Second)
//	}
//
// # How nothing is left behind
//
// Each command is the first process of a group of its own, and ending a command
// means ending its group. While the program lives, it does that itself. For the
// case that it cannot (SIGKILL, a crash, a panic on any goroutine) there is a
// guardian: a second process of the same binary, in a session of its own, which
// holds the reading end of a pipe. The program writes the number of each group
// into that pipe before the group runs anything; when the program is gone, in
// whatever way, the kernel closes the other end and the guardian ends all groups.
//
//	program ──"+4711"──▶ guardian        (a pipe; its end is the alarm)
//	   │
//	   └─ fork ─▶ gate (group 4711) ──"go"──▶ exec ─▶ the command, still 4711
//
// Between fork and the note to the guardian there would be a gap in which the
// program could die and leave an unknown group. So what is forked first is a gate:
// this binary once more, which waits for a byte on a second pipe and only then
// becomes the command by exec, with the same process number. If the program dies
// in the gap, the gate reads the end of its pipe and goes.
//
// A parent-death signal would be simpler, but it reaches only the first process of
// a group, exists only on Linux, and follows the thread that forked rather than
// the program. A guardian that is killed is replaced.
//
// Out of reach are a process that leaves its group on purpose (setsid), and what
// runs when program and guardian are killed in the same moment, or the program while
// its guardian is stopped (SIGSTOP).
//
// # Concurrency
//
// All methods may be called by any number of goroutines at once.
package proc
