//go:build race

package stepped_test

// histories are how many are run: under the race detector fewer.
const histories = 1000
