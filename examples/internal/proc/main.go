//go:build unix

package proc

import "os"

// The names under which this binary starts itself again. They are argv[0]: an
// environment variable would be seen by the commands, and a flag could be taken
// for one of the program's.
const (
	guardianName = "homeostat-guardian"
	gateName     = "homeostat-gate"
)

// Main must be the first thing that main does (in a test binary: TestMain). In a
// process that was started as guardian or gate it does that work and never
// returns; in the program itself it returns at once.
func Main() {
	switch os.Args[0] {
	case guardianName:
		guard(os.Stdin)
		os.Exit(0)
	case gateName:
		if len(os.Args) < 3 {
			os.Exit(2) // not started by us
		}
		os.Exit(gate(os.Args[1], os.Args[2:]))
	}
}
