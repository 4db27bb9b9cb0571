package retry

import "net/http"

// Transport counts every HTTP call of a client against the budget: each waits
// for its turn under its own context, and an answer 429 or 503 with Retry-After
// pauses all holders. The answer itself is passed on untouched. A nil next is
// http.DefaultTransport.
//
// Use it where one run makes several calls, and then not [Budget.Do] around the
// run as well: each call would be counted twice.
func (b *Budget) Transport(next http.RoundTripper) http.RoundTripper {
	if next == nil {
		next = http.DefaultTransport
	}
	return &transport{budget: b, next: next}
}

type transport struct {
	budget *Budget
	next   http.RoundTripper
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := t.budget.Wait(req.Context()); err != nil {
		if req.Body != nil {
			req.Body.Close() // a RoundTripper closes it, also when it fails
		}
		return nil, err
	}
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		t.budget.heed(err)
		return resp, err
	}
	if d, told := retryAfter(resp); told {
		t.budget.Pause(d)
	}
	return resp, nil
}

// CloseIdleConnections keeps http.Client.CloseIdleConnections working: it looks
// for this method on the outermost transport.
func (t *transport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
