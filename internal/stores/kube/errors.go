package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/retry"
)

// status is what the server says instead of an answer.
type status struct {
	Kind    string
	Message string
	Reason  string
	Code    int
	Details struct {
		Causes            []struct{ Reason string }
		RetryAfterSeconds int
	}
}

func (s *status) Error() string { return fmt.Sprintf("kube: %d %s: %s", s.Code, s.Reason, s.Message) }

// refused makes an error of an answer that is none.
func refused(resp *http.Response) error {
	s := &status{}
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil || json.Unmarshal(text, s) != nil || s.Kind != "Status" {
		// Not from the server, but from something in between.
		s = &status{Message: http.StatusText(resp.StatusCode)}
	}
	s.Code = resp.StatusCode
	return s.verdict(resp.Request.Method, resp.Header)
}

// verdict says what a status means to a caller, and what is to be done.
func (s *status) verdict(method string, header http.Header) error {
	if n := s.Details.RetryAfterSeconds; n > 0 { // the header's number; in a stream there is no header
		header = http.Header{"Retry-After": {strconv.Itoa(n)}}
	}
	word := retry.Response(&http.Response{StatusCode: s.Code, Header: header})
	wait, told := retry.Delay(word)
	err := s.means()
	if err == nil {
		err = s
		if retry.IsPermanent(word) {
			err = retry.Permanent(s)
		}
	}
	// An error of the server, or of a gateway, says nothing about what became of a
	// write; to ask for another attempt later is to say that this one was none.
	refusal := s.Code < 500 || s.Code == http.StatusServiceUnavailable && told
	if method != http.MethodGet && !refusal {
		err = fmt.Errorf("%w: %w", backend.ErrOutcomeUnknown, err)
	}
	if told {
		err = retry.After(err, wait)
	}
	return err
}

// nowhere is the 404 of a collection: there is no such kind, or no namespace. It
// does not say that there is no object.
func nowhere(err error) error {
	if s, ok := errors.AsType[*status](err); ok && s.Code == http.StatusNotFound {
		return retry.Permanent(s)
	}
	return err
}

// means finds the sentinel for a status; nil when it is only its number.
func (s *status) means() error {
	as := func(sentinel error) error { return fmt.Errorf("%w: %w", sentinel, s) }
	switch {
	case s.Code == http.StatusGone:
		return as(reflector.ErrExpired)
	case s.tooLarge():
		return as(reflector.ErrFutureCursor)
	case s.Code == http.StatusNotFound:
		return as(backend.ErrNotFound)
	case s.Reason == "AlreadyExists":
		return as(backend.ErrExists)
	case s.Code == http.StatusConflict:
		return as(backend.ErrConflict)
	case s.Code == http.StatusUnsupportedMediaType, s.Code == http.StatusNotAcceptable, s.Code == http.StatusMethodNotAllowed:
		return as(errors.ErrUnsupported)
	}
	return nil
}

func (s *status) tooLarge() bool {
	for _, c := range s.Details.Causes {
		if c.Reason == "ResourceVersionTooLarge" {
			return true
		}
	}
	return false
}

// lost is an answer that did not come. Only who had no connection knows that
// nothing was written.
func lost(method string, err error) error {
	if op, ok := errors.AsType[*net.OpError](err); method == http.MethodGet || ok && op.Op == "dial" {
		return err
	}
	return fmt.Errorf("%w: %w", backend.ErrOutcomeUnknown, err)
}

func failed(op, key string, want, found object.Version, err error) error {
	return &backend.Error{Op: op, Key: key, Want: want, Found: found, Err: err}
}
