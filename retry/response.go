package retry

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Response turns the status of an HTTP answer into a word:
//
//	2xx, 3xx, any of ok             nil
//	429, 5xx with Retry-After       After
//	408, 425, 429, 5xx              a plain error: again after a backoff
//	other 4xx                       Permanent
//
// Any other status is a plain error. Retry-After may be a number of seconds or a
// date; a date is read by the answer's own clock (its Date header) where it
// tells one, so that two clocks need not agree. The body is neither read nor
// closed.
func Response(r *http.Response, ok ...int) error {
	if r == nil {
		return errors.New("retry: no HTTP response")
	}
	code := r.StatusCode
	if code >= 200 && code < 400 || slices.Contains(ok, code) {
		return nil
	}
	err := statusError(r)
	if d, told := retryAfter(r); told {
		return After(err, d)
	}
	switch code {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return err
	}
	if code >= 400 && code < 500 {
		return Permanent(err)
	}
	return err
}

// statusError leaves out the query of the URL: it is where secrets are.
func statusError(r *http.Response) error {
	status := strconv.Itoa(r.StatusCode)
	if text := http.StatusText(r.StatusCode); text != "" {
		status += " " + text
	}
	if r.Request == nil || r.Request.URL == nil {
		return fmt.Errorf("http: %s", status)
	}
	method := r.Request.Method
	if method == "" {
		method = http.MethodGet
	}
	return fmt.Errorf("http: %s %s%s: %s", method, r.Request.URL.Host, r.Request.URL.Path, status)
}

// retryAfter is what the answer says about when to come back. A time that has
// passed already is 0.
func retryAfter(r *http.Response) (time.Duration, bool) {
	if r.StatusCode != http.StatusTooManyRequests && r.StatusCode < 500 {
		return 0, false
	}
	value := strings.TrimSpace(r.Header.Get("Retry-After"))
	if value == "" {
		return 0, false
	}
	if strings.Trim(value, "0123456789") == "" {
		const most = math.MaxInt64 / int64(time.Second)
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > most { // only out of range: it is all digits
			return math.MaxInt64, true
		}
		return time.Duration(seconds) * time.Second, true
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	now, err := http.ParseTime(r.Header.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return max(at.Sub(now), 0), true
}
