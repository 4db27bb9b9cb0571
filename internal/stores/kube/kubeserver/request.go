package kubeserver

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// request is what a URL asks for.
type request struct {
	res      *resource
	ns, name string
	query    url.Values
	sel      selector
	accept   string
}

// parse reads /api/v1/… and /apis/GROUP/VERSION/…; nil when nothing is there.
func parse(r *http.Request) *request {
	parts := strings.Split(strings.Trim(r.URL.EscapedPath(), "/"), "/")
	for i := range parts {
		parts[i], _ = url.PathUnescape(parts[i])
	}
	var group, version string
	switch {
	case len(parts) > 2 && parts[0] == "api":
		version, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		group, version, parts = parts[1], parts[2], parts[3:]
	default:
		return nil
	}
	q := r.URL.Query()
	req := &request{query: q, accept: r.Header.Get("Accept")}
	if len(parts) > 2 && parts[0] == "namespaces" {
		req.ns, parts = parts[1], parts[2:]
	}
	if len(parts) == 2 {
		req.name = parts[1]
	} else if len(parts) != 1 {
		return nil
	}
	for _, res := range served {
		if res.group == group && res.version == version && res.plural == parts[0] {
			req.res = res
		}
	}
	if req.res == nil || req.name != "" && req.ns == "" {
		return nil
	}
	req.sel = selector{requirements(q.Get("labelSelector")), requirements(q.Get("fieldSelector"))}
	return req
}

func (r *request) id() id { return id{r.res, r.ns, r.name} }

func (r *request) flag(name string) bool {
	v := r.query.Get(name)
	return v == "1" || v == "true"
}

func (r *request) seconds(name string) time.Duration {
	n, err := strconv.Atoi(r.query.Get(name))
	if err != nil {
		return 0
	}
	return time.Duration(n) * time.Second
}

func (r *request) verb(method string) string {
	switch {
	case method == http.MethodPost:
		return "create"
	case method == http.MethodPut:
		return "update"
	case method == http.MethodPatch:
		return "patch"
	case method == http.MethodDelete:
		return "delete"
	case r.name != "":
		return "get"
	case r.flag("watch"):
		return "watch"
	}
	return "list"
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	down := s.down
	s.mu.Unlock()
	if down {
		panic(http.ErrAbortHandler)
	}
	req := parse(r)
	if req == nil {
		failure(http.StatusNotFound, "NotFound", "the server could not find the requested resource", &Details{}).ServeHTTP(w, r)
		return
	}
	verb := req.verb(r.Method)
	if status := s.authorize(r, req, verb); status != nil {
		status.ServeHTTP(w, r)
		return
	}
	var body any
	var status *Status
	code := http.StatusOK
	switch verb {
	case "watch":
		s.watch(w, r, req)
		return
	case "list":
		body, status = s.list(r, req)
	case "get":
		body, status = s.get(req)
	default:
		body, code, status = s.write(r, req, verb)
		if s.loses() {
			panic(http.ErrAbortHandler)
		}
	}
	if status != nil {
		status.ServeHTTP(w, r)
		return
	}
	answer(w, code, body)
}

func (s *Server) authorize(r *http.Request, req *request, verb string) *Status {
	if s.opts.Auth == nil {
		return nil
	}
	user, allowed := s.opts.Auth(r)
	switch {
	case user == "":
		return failure(http.StatusUnauthorized, "Unauthorized", "Unauthorized", nil)
	case !allowed:
		return req.res.forbidden(user, verb, req.ns)
	}
	return nil
}
