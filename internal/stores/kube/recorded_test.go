package kube_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// recording is one request, and what a real server answered.
type recording struct {
	File, Method, Path, Query, Accept, ContentType string
	Status                                         int
	body                                           []byte
}

// recordings reads testdata; its index also has files that no test needs.
func recordings(t *testing.T) map[string]recording {
	t.Helper()
	text, err := os.ReadFile("testdata/index.json")
	require.NoError(t, err)
	var all []recording
	require.NoError(t, json.Unmarshal(text, &all))
	byFile := map[string]recording{}
	for _, r := range all {
		r.body, err = os.ReadFile(path.Join("testdata", r.File))
		require.NoError(t, err)
		byFile[r.File] = r
	}
	return byFile
}

// object reads a recorded body that is one object.
func (r recording) object(t *testing.T) (l recordedList) {
	t.Helper()
	require.NoError(t, json.Unmarshal(r.body, &l))
	return l
}

type recordedList struct {
	Kind     string
	Metadata struct{ ResourceVersion, Continue string }
	Items    []configMap
}

// replay answers recorded requests with what was recorded, whatever timeoutSeconds
// says. What it was not told to answer is a failed test.
type replay struct {
	t     *testing.T
	files []recording
	head  string // the resourceVersion of the list that a store opens a watch with
}

func replaying(t *testing.T, head string, files ...string) http.Handler {
	t.Helper()
	all := recordings(t)
	r := &replay{t: t, head: head}
	for _, file := range files {
		require.Contains(t, all, file)
		r.files = append(r.files, all[file])
	}
	return r
}

func (r *replay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	partial := strings.Contains(req.Header.Get("Accept"), "as=PartialObjectMetadataList")
	for _, f := range r.files {
		asked, _ := url.ParseQuery(f.Query)
		if f.Method != req.Method || f.Path != req.URL.Path || same(asked) != same(req.URL.Query()) ||
			partial != strings.Contains(f.Accept, "as=PartialObjectMetadataList") {
			continue
		}
		w.Header().Set("Content-Type", f.ContentType)
		w.WriteHeader(f.Status)
		w.Write(f.body)
		return
	}
	if partial && req.URL.RawQuery == "limit=1" {
		w.Write([]byte(`{"kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"` + r.head + `"},"items":[]}`))
		return
	}
	r.t.Errorf("nobody recorded %s %s (%s)", req.Method, req.URL, req.Header.Get("Accept"))
	w.WriteHeader(http.StatusTeapot)
}

func same(q url.Values) string {
	q.Del("timeoutSeconds")
	return q.Encode()
}
