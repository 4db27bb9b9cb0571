//go:build !race

package stepped_test

// histories are how many are run.
const histories = 20_000
