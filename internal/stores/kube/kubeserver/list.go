package kubeserver

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

type list struct {
	Kind       string   `json:"kind"`
	APIVersion string   `json:"apiVersion"`
	Metadata   listMeta `json:"metadata"`
	Items      []doc    `json:"items"`
}

type listMeta struct {
	ResourceVersion    string `json:"resourceVersion"`
	Continue           string `json:"continue,omitempty"`
	RemainingItemCount int    `json:"remainingItemCount,omitempty"`
}

// token is where a list goes on. With Rev -1 it goes on at whatever is the newest
// state then.
type token struct {
	V     string `json:"v"`
	Rev   int64  `json:"rv"`
	Start string `json:"start"`
}

func (t token) String() string {
	text, err := json.Marshal(t)
	if err != nil {
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

func readToken(text string) (t token, status *Status) {
	plain, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(plain, &t)
	}
	if err != nil {
		return t, badRequest("invalid continue token: continue key is not valid: %v", err)
	}
	return t, nil
}

func (s *Server) get(req *request) (any, *Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, ok := s.state.objects[req.id()]
	if !ok {
		return nil, req.res.notFound(req.name)
	}
	return d, nil
}

// list answers a page.
func (s *Server) list(r *http.Request, req *request) (any, *Status) {
	partial := strings.Contains(req.accept, "as=PartialObjectMetadataList")
	if !partial && strings.Contains(req.accept, "as=") {
		return nil, failure(http.StatusNotAcceptable, "NotAcceptable", "only JSON and PartialObjectMetadataList are served", nil)
	}
	from, status := s.snapshot(r, req)
	if status != nil {
		return nil, status
	}
	out := list{
		Kind: req.res.kind + "List", APIVersion: req.res.apiVersion(),
		Metadata: listMeta{ResourceVersion: strconv.FormatUint(from.rev, 10)},
		Items:    []doc{},
	}
	if partial {
		out.Kind, out.APIVersion = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	for n, e := range from.entries {
		if len(out.Items) == from.limit && from.limit > 0 {
			last := from.entries[n-1].id
			out.Metadata.Continue = token{"meta.k8s.io/v1", int64(from.rev), start(req, last)}.String()
			if req.sel.empty() { // otherwise nobody has counted
				out.Metadata.RemainingItemCount = len(from.entries) - n
			}
			break
		}
		out.Items = append(out.Items, item(e.doc, partial))
	}
	return out, nil
}

// start is right behind an object.
func start(req *request, i id) string {
	if req.ns != "" {
		return "/" + i.name + "\x00"
	}
	return "/" + i.ns + "/" + i.name + "\x00"
}

// item is an object as it is in a list: it says nothing of its kind.
func item(d doc, partial bool) doc {
	if partial {
		return doc{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": d.meta()}
	}
	d = maps.Clone(d)
	delete(d, "kind")
	delete(d, "apiVersion")
	return d
}

// snapshot is what a page is cut from.
type snapshot struct {
	rev     uint64
	entries []entry
	limit   int
}

// snapshot finds the state that a list asks for, and of that what comes after its
// continue token.
func (s *Server) snapshot(r *http.Request, req *request) (out snapshot, status *Status) {
	q := req.query
	want, status := revision(q.Get("resourceVersion"))
	if status != nil {
		return out, status
	}
	match, cont := q.Get("resourceVersionMatch"), q.Get("continue")
	given := q.Get("resourceVersion") != ""
	switch {
	case q.Get("sendInitialEvents") != "":
		return out, forbiddenOption("sendInitialEvents", "sendInitialEvents is forbidden for list")
	case match != "" && (!given || cont != ""):
		return out, forbiddenOption("resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided")
	case cont != "" && given && want != 0:
		return out, badRequest("specifying resource version is not allowed when using continue")
	}
	limit, err := strconv.Atoi(q.Get("limit"))
	if err == nil {
		out.limit = limit
	}
	if want > 0 && match != "Exact" {
		within := s.opts.FreshWithin
		if t := req.seconds("timeoutSeconds"); t > 0 {
			within = min(within, t)
		}
		if status := s.fresh(r, want, within); status != nil {
			return out, status
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out.rev = s.state.rev
	after := ""
	switch {
	case cont != "":
		t, status := readToken(cont)
		if status != nil {
			return out, status
		}
		after = "/" + strings.TrimPrefix(t.Start, "/")
		if t.Rev >= 0 {
			out.rev = uint64(t.Rev)
			if out.rev < s.state.compacted {
				return out, inconsistent(t)
			}
		}
	case match == "Exact":
		out.rev = want
		if want < s.state.compacted {
			return out, expired("The resourceVersion for the provided list is too old.")
		}
		if want > s.state.rev {
			return out, tooLarge(want, s.state.rev)
		}
	case given && want == 0: // from the watch cache, which knows no limits
		out.rev, out.limit = s.visibleLocked(), 0
	}
	for _, e := range s.state.entries(req.res, req.ns, out.rev) {
		if start(req, e.id) > after && req.sel.matches(e.doc) {
			out.entries = append(out.entries, e)
		}
	}
	return out, nil
}

func inconsistent(t token) *Status {
	status := expired("The provided continue parameter is too old to display a consistent list result. " +
		"Begin again without it, or go on with the continue token of this answer: objects that were created, " +
		"modified or deleted since the first page was read may then show up in the list, or not.")
	status.Metadata.Continue = token{t.V, -1, strings.TrimPrefix(t.Start, "/")}.String()
	return status
}

func revision(text string) (uint64, *Status) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, invalid("meta.k8s.io", "ListOptions", "ListOptions.meta.k8s.io", "", Cause{
			Reason: "FieldValueInvalid", Message: "Invalid value: " + strconv.Quote(text), Field: "resourceVersion"})
	}
	return n, nil
}

// fresh waits until the watch cache has come to a revision.
func (s *Server) fresh(r *http.Request, want uint64, within time.Duration) *Status {
	timer := time.NewTimer(within)
	defer timer.Stop()
	for {
		s.mu.Lock()
		has, changed := s.visibleLocked(), s.changed
		s.mu.Unlock()
		if has >= want {
			return nil
		}
		select {
		case <-changed:
		case <-timer.C:
			return tooLarge(want, has)
		case <-r.Context().Done():
			return tooLarge(want, has)
		}
	}
}

// Names lists the objects of a resource ("configmaps"), as namespace/name, for
// tests.
func (s *Server) Names(plural string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for i := range s.state.objects {
		if i.res.plural == plural {
			names = append(names, i.ns+"/"+i.name)
		}
	}
	slices.Sort(names)
	return names
}
