package patch

import (
	"bytes"
	"math"
	"strconv"
	"strings"
)

// sameNumber is the one rule of numeric equality, for test operations and for
// patches made by comparing:
//
//   - two integer literals are compared exactly, whatever their size;
//   - all else as float64, so that 1, 1.0 and 1e0 are equal;
//   - except that beyond the range of float64, where all would be infinite,
//     numbers are equal if they are so as decimals.
func sameNumber(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if isInteger(a) && isInteger(b) {
		// JSON allows one spelling of each integer, but for zero's sign.
		return isZero(a) && isZero(b)
	}
	// Errors are those of range alone, and leave an infinity (or a zero) behind.
	x, _ := strconv.ParseFloat(string(a), 64)
	y, _ := strconv.ParseFloat(string(b), 64)
	if math.IsInf(x, 0) && x == y {
		da, ea, oka := decimal(a)
		db, eb, okb := decimal(b)
		return oka && okb && da == db && ea == eb
	}
	return x == y
}

func isInteger(n []byte) bool { return !bytes.ContainsAny(n, ".eE") }

func isZero(n []byte) bool { return n[len(n)-1] == '0' && len(bytes.TrimPrefix(n, []byte("-"))) == 1 }

// decimal splits a number that is not zero into its significant digits, read as
// an integer, and the power of ten that goes with them. The sign is left out.
// It gives up on exponents that are far beyond any use.
func decimal(n []byte) (digits string, exp int64, ok bool) {
	mantissa, power, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(string(n), "-")), "e")
	if power != "" {
		var err error
		if exp, err = strconv.ParseInt(power, 10, 32); err != nil {
			return "", 0, false
		}
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits = strings.TrimLeft(whole+fraction, "0")
	exp -= int64(len(fraction))
	short := strings.TrimRight(digits, "0")
	return short, exp + int64(len(digits)-len(short)), true
}
