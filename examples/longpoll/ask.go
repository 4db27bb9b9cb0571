package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/retry"
)

// request is one question.
type request struct {
	method, path string
	query        url.Values
	header       http.Header
	body         []byte
	wait         time.Duration // how long the service is asked to take
}

// ask sends a request and reads the whole answer. Nothing of it is left when it
// returns: the body is closed, and ctx ends whatever is under way.
func (s *Store[T]) ask(ctx context.Context, q request, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, q.wait+s.timeout)
	defer cancel()
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { sent.Store(true) },
	})
	r, err := http.NewRequestWithContext(ctx, q.method, s.url+q.path+"?"+q.query.Encode(), bytes.NewReader(q.body))
	if err != nil {
		return retry.Permanent(err) // the URL is wrong
	}
	for name, values := range q.header {
		r.Header[name] = values
	}
	resp, err := s.client.Do(r)
	if err != nil {
		// Before there was a connection nothing can have been done.
		if !sent.Load() {
			return err
		}
		return q.lost(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(http.MaxBytesReader(nil, resp.Body, s.maxBytes))
	if resp.StatusCode != http.StatusOK {
		return q.refused(resp, data)
	}
	if err == nil {
		err = json.Unmarshal(data, answer)
	}
	if err != nil {
		return q.lost(err)
	}
	return nil
}

// lost is the error of an answer that did not come, or can't be read. What was to
// be written may have been.
func (q request) lost(err error) error {
	if q.method == http.MethodGet {
		return err
	}
	return fmt.Errorf("%w: %w", backend.ErrOutcomeUnknown, err)
}

// refused is an answer that is not 200. Only the service's own words say that
// there is no object, or a conflict: a 404 may also be a wrong URL, and a 502 a
// proxy's, which does not know what the service has done.
func (q request) refused(resp *http.Response, data []byte) error {
	no := &refusal{}
	_ = json.Unmarshal(data, no) // somebody else's words leave it empty
	if no.Unwrap() != nil {
		return no
	}
	err := retry.Response(resp) // retry.After, retry.Permanent, or neither
	if err == nil {
		err = fmt.Errorf("http: %s", resp.Status)
	}
	if no.Message != "" {
		err = fmt.Errorf("%w: %s", err, no.Message)
	}
	theirFault := resp.StatusCode < 400 || resp.StatusCode >= 500
	if theirFault && no.Code != codeOverloaded {
		return q.lost(err)
	}
	return err
}

// Error is what the service said.
func (r *refusal) Error() string { return r.Message }

// Unwrap is what it means to the library; nil when the library has no word for it.
func (r *refusal) Unwrap() error {
	switch r.Code {
	case codeNotFound:
		return backend.ErrNotFound
	case codeExists:
		return backend.ErrExists
	case codeConflict:
		return backend.ErrConflict
	case codeGone:
		return reflector.ErrExpired
	case codeAhead:
		return reflector.ErrFutureCursor
	}
	return nil
}
