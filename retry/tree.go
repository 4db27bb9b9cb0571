package retry

import "time"

// Delay is the longest delay that any error in err's tree names, [Later]
// included; false when none names one.
func Delay(err error) (time.Duration, bool) {
	return longest(err, true)
}

// IsPermanent reports that some error in err's tree is [Permanent].
func IsPermanent(err error) bool {
	if err == nil {
		return false
	}
	if _, ok := err.(*permanentError); ok {
		return true
	}
	many, one := unwrap(err)
	for _, e := range many {
		if IsPermanent(e) {
			return true
		}
	}
	return IsPermanent(one)
}

// IsLater reports that err is [Later] and no failure: every leaf of its tree is a
// Later, and none of them is inside an [After] or a [Permanent].
func IsLater(err error) bool {
	switch err.(type) {
	case nil, *permanentError, interface{ RetryAfter() time.Duration }: // After has it too
		return false
	case *laterError:
		return true
	}
	many, one := unwrap(err)
	later := false
	for _, e := range many {
		if e == nil {
			continue
		}
		if !IsLater(e) {
			return false
		}
		later = true
	}
	return later || IsLater(one)
}

// longest is Delay; without later it reads only what failures say.
func longest(err error, later bool) (d time.Duration, named bool) {
	switch e := err.(type) {
	case nil:
		return 0, false
	case *laterError:
		return e.delay, later
	case *afterError:
		d, named = e.delay, true
	case interface{ RetryAfter() time.Duration }:
		// Foreign types answer 0 for "not told", so only a positive one counts.
		if after := e.RetryAfter(); after > 0 {
			d, named = after, true
		}
	}
	many, one := unwrap(err)
	if sub, ok := longest(one, later); ok {
		d, named = max(d, sub), true
	}
	for _, e := range many {
		if sub, ok := longest(e, later); ok {
			d, named = max(d, sub), true
		}
	}
	return d, named
}

// unwrap gives what err wraps: one error or many, never both.
func unwrap(err error) (many []error, one error) {
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return nil, e.Unwrap()
	case interface{ Unwrap() []error }:
		return e.Unwrap(), nil
	}
	return nil, nil
}
