package kube_test

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/homeostat/homeostat/internal/stores/kube/kubeserver"
	"github.com/stretchr/testify/require"
)

// bench is our server, holding what the recorded one held where it was asked.
type bench struct {
	t      *testing.T
	srv    *kubeserver.Server
	client *http.Client
	url    string
}

func newBench(t *testing.T, opts *kubeserver.Options, asked string) *bench {
	t.Helper()
	b := &bench{t: t, srv: kubeserver.New(opts)}
	b.client, b.url = serve(t, b.srv)
	all := recordings(t)
	for file, path := range map[string]string{
		"list/configmaps.json": configMaps, "list/deployments.json": deployments, "list/pods.json": pods,
	} {
		if !strings.HasPrefix(asked, path) { // the rest would only take its time
			continue
		}
		var l struct{ Items []map[string]any }
		require.NoError(t, json.Unmarshal(all[file].body, &l))
		for _, item := range l.Items {
			require.NoError(t, b.srv.Put(path, item))
		}
	}
	return b
}

// do sends a recorded request, with another query and a body.
func (b *bench) do(r recording, query string, contentType, body string) (*http.Response, []byte) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(soon(b.t), r.Method, b.url+r.Path+"?"+query, strings.NewReader(body))
	require.NoError(b.t, err)
	req.Header.Set("Accept", r.Accept)
	req.Header.Set("Content-Type", contentType)
	resp, err := b.client.Do(req)
	require.NoError(b.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(b.t, err)
	return resp, text
}

func (b *bench) now() string { return strconv.FormatUint(b.srv.Revision(), 10) }

// merge patches one object.
func (b *bench) merge(path, body string) {
	b.t.Helper()
	resp, text := b.do(recording{Method: http.MethodPatch, Path: path}, "", "application/merge-patch+json", body)
	require.Equal(b.t, http.StatusOK, resp.StatusCode, string(text))
}

// changes are those during which the watches were recorded.
func (b *bench) changes() {
	b.t.Helper()
	fresh := map[string]any{"metadata": map[string]any{"name": "fresh"}, "data": map[string]string{"a": "1"}}
	require.NoError(b.t, b.srv.Put(configMaps, fresh))
	b.merge(configMaps+"/fresh", `{"data":{"a":"2"}}`)
	b.merge(configMaps+"/conf-02", `{"metadata":{"labels":{"team":"green"}}}`)
	b.merge(configMaps+"/conf-01", `{"metadata":{"labels":{"team":"red"}}}`)
	require.NoError(b.t, b.srv.Delete(configMaps, "fresh"))
}

// rollout is what the watch of the Deployments was recorded during.
func (b *bench) rollout() {
	b.t.Helper()
	app := deployments + "/app-01"
	b.merge(app, `{"spec":{"revisionHistoryLimit":5}}`)
	b.merge(app, `{"spec":{"replicas":3}}`)
	b.merge(app, `{"status":{"observedGeneration":3,"replicas":3,"updatedReplicas":3}}`)
	b.merge(app, `{"metadata":{"finalizers":["example.com/hold"]}}`)
	require.NoError(b.t, b.srv.Delete(deployments, "app-01"))
	b.merge(app, `{"metadata":{"finalizers":null}}`)
}

// stream sends a recorded watch and does something while it is open.
func (b *bench) stream(r recording, query string, during func()) (*http.Response, []byte) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(soon(b.t), r.Method, b.url+r.Path+"?"+query, nil)
	require.NoError(b.t, err)
	resp, err := b.client.Do(req) // returns once the watch is open
	require.NoError(b.t, err)
	defer resp.Body.Close()
	during()
	b.srv.Cut(kubeserver.Timeout)
	text, err := io.ReadAll(resp.Body)
	require.NoError(b.t, err)
	return resp, text
}

// TestServerAnswersInRecordedForms asks our server for everything that the real
// one was asked for, and compares the status codes and the structure of the
// answers: all members, and the kinds of their values.
func TestServerAnswersInRecordedForms(t *testing.T) {
	exempt := map[string]string{
		"discovery/api-v1.json":       "no discovery",
		"discovery/apis-apps-v1.json": "no discovery",
		"discovery/version.json":      "no discovery",
		"list/deployments-table.json": "no tables",
	}
	all := recordings(t)
	for _, file := range slices.Sorted(maps.Keys(all)) {
		r := all[file]
		t.Run(file, func(t *testing.T) {
			if why := exempt[file]; why != "" {
				t.Skip(why)
			}
			resp, text := answered(t, file, r)
			require.Equal(t, r.Status, resp.StatusCode, string(text))
			require.Equal(t, r.ContentType, resp.Header.Get("Content-Type"))
			want, got := documents(t, r.body), documents(t, text)
			require.Equal(t, types(want), types(got), "the kinds of events")
			require.Equal(t, form(want...), form(got...), string(text))
		})
	}
}

// answered brings our server to where the real one was, and asks.
func answered(t *testing.T, file string, r recording) (*http.Response, []byte) {
	t.Helper()
	opts := &kubeserver.Options{FreshWithin: time.Millisecond}
	switch file {
	case "errors/unauthorized.json":
		opts.Auth = func(*http.Request) (string, bool) { return "", false }
	case "errors/forbidden.json":
		opts.Auth = func(*http.Request) (string, bool) { return "nobody", false }
	}
	b := newBench(t, opts, r.Path)
	q, err := url.ParseQuery(r.Query)
	require.NoError(t, err)
	send := func(body string) (*http.Response, []byte) { return b.do(r, q.Encode(), "application/json", body) }
	// page follows the continue tokens to the n-th page.
	page := func(n int, between func()) (resp *http.Response, text []byte) {
		q.Del("continue")
		for i := range n {
			if i == 1 && between != nil {
				between()
			}
			resp, text = send("")
			var l recordedList
			require.NoError(t, json.Unmarshal(text, &l))
			q.Set("continue", l.Metadata.Continue)
		}
		return resp, text
	}
	forget := func() { b.changes(); b.srv.Compact(); b.srv.Restart() }
	switch file {
	case "errors/already-exists.json":
		return send(`{"metadata":{"name":"conf-01"}}`)
	case "errors/bad-request.json":
		return send(`{"metadata":{"name":3}}`)
	case "errors/conflict.json":
		return send(`{"metadata":{"name":"conf-01","resourceVersion":"1"}}`)
	case "errors/invalid.json":
		return send(`{"metadata":{"name":"Bad_Name"},"spec":{"replicas":-1}}`)
	case "pages/configmaps-page-2.json", "pages/configmaps-page-3.json", "pages/configmaps-page-4.json":
		return page(int(file[len("pages/configmaps-page-")]-'0'), b.changes)
	case "expired/page-2.json":
		return page(2, forget)
	case "expired/page-2-inconsistent.json":
		return page(3, forget) // the second is the 410, whose token this uses
	case "expired/list-exact.json", "expired/watch.ndjson":
		q.Set("resourceVersion", b.now())
		forget()
		return send("")
	case "watch/configmaps-from-0.ndjson":
		return b.stream(r, q.Encode(), func() {})
	case "watch/deployments-with-finalizer.ndjson":
		q.Set("resourceVersion", b.now())
		return b.stream(r, q.Encode(), b.rollout)
	case "watch/configmaps.ndjson", "watch/configmaps-label-team-red.ndjson":
		q.Set("resourceVersion", b.now())
		return b.stream(r, q.Encode(), b.changes)
	case "watchlist/configmaps.ndjson":
		return b.stream(r, q.Encode(), b.changes)
	case "watchlist/pods-label.ndjson", "watchlist/empty.ndjson":
		return b.stream(r, q.Encode(), func() {})
	}
	return send("")
}

// documents are the JSON values of a body; a watch has one a line.
func documents(t *testing.T, text []byte) (all []any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(text))
	for {
		var v any
		err := dec.Decode(&v)
		if err == io.EOF {
			return all
		}
		require.NoError(t, err)
		all = append(all, v)
	}
}

// types are the kinds of the events of a watch, in order. How many bookmarks come
// in a row is a matter of time.
func types(docs []any) (all []string) {
	for _, d := range docs {
		kind, _ := d.(map[string]any)["type"].(string)
		all = append(all, kind)
	}
	all = slices.CompactFunc(all, func(a, b string) bool { return a == b && a == "BOOKMARK" })
	if len(all) > 1 && all[len(all)-1] == "BOOKMARK" { // so is one at the very end
		all = all[:len(all)-1]
	}
	return all
}

// form is every path of the documents with the kind of what is there. Elements of
// lists are one place. Left out is what our server does not keep: who manages a
// field, and the empty spec and status of a Deployment's bookmark.
func form(docs ...any) []string {
	paths := map[string]bool{}
	for _, d := range docs {
		top, _ := d.(map[string]any)
		at := "$"
		if kind, ok := top["type"].(string); ok {
			at = kind
			obj, _ := top["object"].(map[string]any)
			if kind == "BOOKMARK" {
				delete(obj, "spec")
				delete(obj, "status")
			}
		}
		walk(paths, at, d)
	}
	return slices.Sorted(maps.Keys(paths))
}

func walk(paths map[string]bool, at string, v any) {
	switch v := v.(type) {
	case map[string]any:
		paths[at+" {}"] = true
		for name, member := range v {
			if name != "managedFields" {
				walk(paths, at+"."+name, member)
			}
		}
	case []any:
		paths[at+" []"] = true
		for _, element := range v {
			walk(paths, at+"[]", element)
		}
	case string:
		paths[at+" string"] = true
	case float64:
		paths[at+" number"] = true
	case bool:
		paths[at+" bool"] = true
	default:
		paths[at+" null"] = true
	}
}
