package consulserver_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/homeostat/homeostat/internal/stores/consul/consulserver"
	"github.com/stretchr/testify/require"
)

// TestAnswers asks what the adapter does not, and what it takes for granted.
func TestAnswers(t *testing.T) {
	srv := consulserver.New(nil)
	web := httptest.NewServer(srv)
	defer web.Close()
	for _, c := range []struct {
		method, path, body string
		code               int
		index, answer      string // "" is not looked at
	}{
		{"GET", "/v1/kv/shop/?recurse", "", 404, "1", ""},
		{"PUT", "/v1/kv/shop/a?cas=7", "x", 200, "", "false"},
		{"PUT", "/v1/kv/shop/a?cas=0", "x", 200, "", "true"},
		{"PUT", "/v1/kv/shop/a?cas=0", "y", 200, "", "false"},
		{"GET", "/v1/kv/shop/a", "", 200, "12", `[{"LockIndex":0,"Key":"shop/a","Flags":0,"Value":"eA==","CreateIndex":12,"ModifyIndex":12}]`},
		{"PUT", "/v1/kv/shop/a", "x", 200, "", "true"},
		{"GET", "/v1/kv/shop/?recurse", "", 200, "12", ""},
		{"PUT", "/v1/kv/other?flags=3", "x", 200, "", "true"},
		{"GET", "/v1/kv/shop/?recurse", "", 200, "12", ""},
		{"GET", "/v1/kv/?recurse", "", 200, "15", ""},
		{"GET", "/v1/kv/absent/?recurse", "", 404, "15", ""},
		{"DELETE", "/v1/kv/shop/a?cas=7", "", 200, "", "false"},
		{"DELETE", "/v1/kv/shop/gone?cas=7", "", 200, "", "true"},
		{"DELETE", "/v1/kv/shop/a?cas=12", "", 200, "", "true"},
		{"GET", "/v1/kv/shop/?recurse&index=12&wait=1s", "", 404, "18", ""},
		{"DELETE", "/v1/kv/other?recurse", "", 200, "", "true"},
		{"GET", "/v1/kv/?recurse&stale&consistent", "", 400, "", ""},
		{"GET", "/v1/kv/?recurse&index=x", "", 400, "", ""},
		{"PUT", "/v1/txn", `[{"KV":{"Verb":"set","Key":"b","Value":"eA=="}},{"KV":{"Verb":"get","Key":"b"}}]`, 200, "",
			`{"Results":[{"KV":{"LockIndex":0,"Key":"b","Flags":0,"Value":null,"CreateIndex":20,"ModifyIndex":20}},` +
				`{"KV":{"LockIndex":0,"Key":"b","Flags":0,"Value":"eA==","CreateIndex":20,"ModifyIndex":20}}],"Errors":null}`},
		{"PUT", "/v1/txn", `[{"KV":{"Verb":"delete","Key":"b"}},{"KV":{"Verb":"check-index","Key":"b","Index":20}}]`, 409, "",
			`{"Results":null,"Errors":[{"OpIndex":1,"What":"key \"b\" doesn't exist"}]}`},
		{"PUT", "/v1/txn", `[{"KV":{"Verb":"delete-cas","Key":"b","Index":7}}]`, 409, "", ""},
		{"PUT", "/v1/txn", `[{"KV":{"Verb":"check-not-exists","Key":"b"}}]`, 409, "", ""},
		{"PUT", "/v1/txn", `[{"KV":{"Verb":"lock","Key":"b"}}]`, 409, "", ""},
		{"PUT", "/v1/txn", `[{}]`, 400, "", ""},
		{"GET", "/v1/kv/b", "", 200, "20", ""},
		{"GET", "/v1/status", "", 404, "", ""},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, web.URL+c.path, strings.NewReader(c.body))
		require.NoError(t, err)
		resp, err := web.Client().Do(req)
		require.NoError(t, err)
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, c.code, resp.StatusCode, "%s %s: %s", c.method, c.path, text)
		if c.index != "" {
			require.Equal(t, c.index, resp.Header.Get("X-Consul-Index"), "%s %s", c.method, c.path)
		}
		if c.answer != "" {
			require.Equal(t, c.answer, string(text), "%s %s", c.method, c.path)
		}
	}
}
