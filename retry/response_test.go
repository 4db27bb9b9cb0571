package retry_test

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/retry"
	"github.com/stretchr/testify/require"
)

func answer(code int, header ...string) *http.Response {
	r := &http.Response{StatusCode: code, Header: http.Header{}}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

func TestResponseByStatus(t *testing.T) {
	const none, plain, permanent = "nil", "plain", "permanent"
	want := map[int]string{
		200: none, 201: none, 204: none, 299: none, 301: none, 304: none, 399: none,
		400: permanent, 401: permanent, 403: permanent, 404: permanent, 409: permanent, 410: permanent,
		412: permanent, 422: permanent, 424: permanent, 426: permanent, 428: permanent, 430: permanent, 499: permanent,
		407: permanent, 408: plain, 425: plain, 429: plain,
		500: plain, 501: plain, 502: plain, 503: plain, 504: plain, 599: plain,
		0: plain, 101: plain, 199: plain, 600: plain,
	}
	for code, kind := range want {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			err := retry.Response(answer(code))
			if kind == none {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			require.ErrorContains(t, err, fmt.Sprint("http: ", code))
			require.Equal(t, kind == permanent, retry.IsPermanent(err))
			_, named := retry.Delay(err)
			require.False(t, named)

			require.NoError(t, retry.Response(answer(code), 1, code), "asked to be fine")
			require.Error(t, retry.Response(answer(code), code+1, code-1), "others are fine")
		})
	}
	require.Error(t, retry.Response(nil))
}

func TestResponseRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		date := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
		tests := []struct {
			name   string
			header []string
			delay  time.Duration
			none   bool
		}{
			{"seconds", []string{"Retry-After", "30"}, 30 * time.Second, false},
			{"spaces", []string{"Retry-After", " 30 "}, 30 * time.Second, false},
			{"at once", []string{"Retry-After", "0"}, 0, false},
			{"beyond a Duration", []string{"Retry-After", "9300000000"}, math.MaxInt64, false},
			{"just within a Duration", []string{"Retry-After", "9223372036"}, 9223372036 * time.Second, false},
			{"beyond an integer", []string{"Retry-After", strings.Repeat("9", 40)}, math.MaxInt64, false},
			{"date by our clock", []string{"Retry-After", date(90 * time.Second)}, 90 * time.Second, false},
			{"date by the server's clock", []string{"Date", date(time.Hour), "Retry-After", date(time.Hour + 20*time.Second)}, 20 * time.Second, false},
			{"unreadable clock of the server", []string{"Date", "noon", "Retry-After", date(20 * time.Second)}, 20 * time.Second, false},
			{"old form of date", []string{"Retry-After", time.Now().Add(time.Minute).UTC().Format(time.ANSIC)}, time.Minute, false},
			{"past date", []string{"Retry-After", date(-time.Minute)}, 0, false},
			{"none", nil, 0, true},
			{"empty", []string{"Retry-After", ""}, 0, true},
			{"negative", []string{"Retry-After", "-1"}, 0, true},
			{"fraction", []string{"Retry-After", "1.5"}, 0, true},
			{"word", []string{"Retry-After", "soon"}, 0, true},
		}
		for _, tt := range tests {
			for _, code := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
				name := fmt.Sprint(tt.name, " ", code)
				err := retry.Response(answer(code, tt.header...))
				require.Error(t, err, name)
				require.False(t, retry.IsPermanent(err), name)
				require.False(t, retry.IsLater(err), name)
				d, named := retry.Delay(err)
				require.Equal(t, tt.delay, d, name)
				require.Equal(t, !tt.none, named, name)
			}
		}
		for code, says := range map[int]bool{400: false, 404: false, 409: false, 429: true, 500: true, 502: true, 504: true} {
			_, named := retry.Delay(retry.Response(answer(code, "Retry-After", "30")))
			require.Equal(t, says, named, "whether %d says when", code)
		}
		require.NoError(t, retry.Response(answer(503, "Retry-After", "30"), 503))
		require.NoError(t, retry.Response(answer(301, "Retry-After", "30")))
	})
}

func TestResponseText(t *testing.T) {
	r := answer(404)
	u, err := url.Parse("https://me:secret@api.example.org/v1/pods?token=secret")
	require.NoError(t, err)
	r.Request = &http.Request{Method: "DELETE", URL: u}
	require.EqualError(t, retry.Response(r), "permanent: http: DELETE api.example.org/v1/pods: 404 Not Found")
	r.Request.Method = ""
	require.ErrorContains(t, retry.Response(r), "http: GET api.")
	r.Request = &http.Request{Method: "GET"}
	require.EqualError(t, retry.Response(r), "permanent: http: 404 Not Found")
	r.StatusCode = 599
	require.EqualError(t, retry.Response(r), "http: 599")
}

func TestResponseLeavesTheBody(t *testing.T) {
	r := answer(500)
	body := &closing{Reader: strings.NewReader("why")}
	r.Body = body
	require.Error(t, retry.Response(r))
	require.False(t, body.closed)
	text, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	require.Equal(t, "why", string(text))
}

type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error { c.closed = true; return nil }
