package kubeserver

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/homeostat/homeostat/patch"
)

// write does a write, or with dryRun only says what would come of it.
func (s *Server) write(r *http.Request, req *request, verb string) (body any, code int, status *Status) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, 0, badRequest("%v", err)
	}
	dry := false
	switch how := req.query.Get("dryRun"); how {
	case "":
	case "All":
		dry = true
	default:
		return nil, 0, badRequest("dryRun: Unsupported value: %q", how)
	}
	w := writing{srv: s, req: req, dry: dry}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case verb == "create" && req.name == "":
		body, status = w.create(text)
		return body, http.StatusCreated, status
	case req.name == "" || verb == "create":
		return nil, 0, failure(http.StatusMethodNotAllowed, "MethodNotAllowed", "the server does not allow this method on the requested resource", &Details{})
	case verb == "update":
		body, status = w.update(text)
	case verb == "patch":
		body, status = w.patch(r.Header.Get("Content-Type"), text)
	case verb == "delete":
		body, status = w.delete(text)
	}
	return body, http.StatusOK, status
}

// writing is one write, with the server's lock held.
type writing struct {
	srv *Server
	req *request
	dry bool
}

func (w *writing) put(after doc) doc {
	st := &w.srv.state
	if w.dry {
		if after == nil {
			return st.objects[w.req.id()]
		}
		return after
	}
	out := st.put(w.req.id(), after)
	w.srv.tellLocked()
	return out
}

var nameForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// decode reads an object and checks what is common to all.
func (w *writing) decode(text []byte) (doc, *Status) {
	res := w.req.res
	var typed struct {
		Kind, APIVersion string
		Metadata         struct {
			Name, Namespace, UID, ResourceVersion string
			Labels                                map[string]string
			Finalizers                            []string
		}
		Spec struct{ Replicas *int }
	}
	if err := json.Unmarshal(text, &typed); err != nil {
		return nil, badRequest("%s in version %q cannot be handled as a %s: %v", res.kind, res.version, res.kind, err)
	}
	d, err := read(text)
	if err != nil || d == nil {
		return nil, badRequest("%s in version %q cannot be handled as a %s: no object", res.kind, res.version, res.kind)
	}
	m := typed.Metadata
	if typed.Kind != "" && typed.Kind != res.kind || typed.APIVersion != "" && typed.APIVersion != res.apiVersion() {
		return nil, badRequest("%s in version %q does not belong to %s", typed.Kind, typed.APIVersion, res.plural)
	}
	if m.Namespace != "" && m.Namespace != w.req.ns {
		return nil, badRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	var causes []Cause
	if m.Name == "" {
		causes = append(causes, Cause{"FieldValueRequired", "Required value: name or generateName is required", "metadata.name"})
	} else if !nameForm.MatchString(m.Name) {
		causes = append(causes, Cause{"FieldValueInvalid", fmt.Sprintf("Invalid value: %q: a lowercase RFC 1123 subdomain is needed", m.Name), "metadata.name"})
	}
	if n := typed.Spec.Replicas; n != nil && *n < 0 {
		causes = append(causes, Cause{"FieldValueInvalid", fmt.Sprintf("Invalid value: %d: must be greater than or equal to 0", *n), "spec.replicas"})
	}
	if causes != nil {
		return nil, res.invalid(m.Name, causes...)
	}
	if d.meta() == nil {
		d["metadata"] = map[string]any{}
	}
	d["kind"], d["apiVersion"] = res.kind, res.apiVersion()
	d.meta()["namespace"] = w.req.ns
	return d, nil
}

func (w *writing) create(text []byte) (any, *Status) {
	d, status := w.decode(text)
	if status != nil {
		return nil, status
	}
	m := d.meta()
	w.req.name = d.field("metadata.name")
	if d.field("metadata.resourceVersion") != "" {
		return nil, failure(http.StatusInternalServerError, "InternalError", "resourceVersion should not be set on objects to be created", nil)
	}
	if _, ok := w.srv.state.objects[w.req.id()]; ok {
		return nil, w.req.res.exists(w.req.name)
	}
	m["uid"] = uid()
	m["creationTimestamp"] = now()
	delete(m, "deletionTimestamp")
	delete(m, "deletionGracePeriodSeconds")
	if w.req.res.generation {
		m["generation"] = json.Number("1")
	}
	return w.put(d), nil
}

func (w *writing) update(text []byte) (any, *Status) {
	d, status := w.decode(text)
	if status != nil {
		return nil, status
	}
	res, name := w.req.res, w.req.name
	if got := d.field("metadata.name"); got != name {
		return nil, badRequest("the name of the object (%s) does not match the name on the URL (%s)", got, name)
	}
	cur, ok := w.srv.state.objects[w.req.id()]
	want := d.field("metadata.uid")
	if !ok && want == "" {
		return nil, res.notFound(name)
	}
	if has := cur.field("metadata.uid"); want != "" && want != has {
		return nil, res.conflict(name, fmt.Sprintf("Precondition failed: UID in precondition: %s, UID in object meta: %s", want, has))
	}
	return w.replace(cur, d)
}

// replace puts d in the place of cur.
func (w *writing) replace(cur, d doc) (any, *Status) {
	res, name := w.req.res, w.req.name
	m, old := d.meta(), cur.meta()
	if rv := d.field("metadata.resourceVersion"); rv != "" && rv != cur.field("metadata.resourceVersion") {
		return nil, res.conflict(name, modified)
	}
	for _, field := range []string{"resourceVersion", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"} {
		if old[field] == nil {
			delete(m, field)
		} else {
			m[field] = old[field]
		}
	}
	if cur.deleting() {
		for _, f := range d.finalizers() {
			if !slices.Contains(cur.finalizers(), f) {
				return nil, res.invalid(name, Cause{"FieldValueForbidden",
					fmt.Sprintf("Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{%q}", f), "metadata.finalizers"})
			}
		}
		if len(d.finalizers()) == 0 {
			w.put(nil)
			return d, nil
		}
	}
	if reflect.DeepEqual(cur, d) {
		return cur, nil
	}
	if res.generation && !reflect.DeepEqual(cur["spec"], d["spec"]) {
		m["generation"] = next(m["generation"])
	}
	return w.put(d), nil
}

func (w *writing) patch(contentType string, text []byte) (any, *Status) {
	var p patch.Patch
	var err error
	switch kind, _, _ := mime.ParseMediaType(contentType); kind {
	case patch.MergeMediaType:
		p, err = patch.Merge(text)
	case patch.JSONMediaType:
		p, err = patch.JSON(text)
	default:
		return nil, unsupportedMediaType()
	}
	if err != nil {
		return nil, badRequest("error decoding patch: %v", err)
	}
	cur, ok := w.srv.state.objects[w.req.id()]
	if !ok {
		return nil, w.req.res.notFound(w.req.name)
	}
	patched, err := p.Apply(cur.text())
	if errors.Is(err, patch.ErrTestFailed) || errors.Is(err, patch.ErrPath) {
		return nil, failure(http.StatusUnprocessableEntity, "Invalid",
			"the server rejected our request due to an error in our request", &Details{})
	}
	if err != nil {
		return nil, badRequest("%v", err)
	}
	d, status := w.decode(patched)
	if status != nil {
		return nil, status
	}
	if d.field("metadata.name") != w.req.name {
		return nil, badRequest("the name of the object (%s) does not match the name on the URL (%s)", d.field("metadata.name"), w.req.name)
	}
	if want, has := d.field("metadata.uid"), cur.field("metadata.uid"); want != "" && want != has {
		return nil, w.req.res.conflict(w.req.name, fmt.Sprintf("Precondition failed: UID in precondition: %s, UID in object meta: %s", want, has))
	}
	return w.replace(cur, d)
}

func (w *writing) delete(text []byte) (any, *Status) {
	var opts struct {
		DryRun        []string
		Preconditions struct{ UID, ResourceVersion *string }
	}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &opts); err != nil {
			return nil, badRequest("%v", err)
		}
	}
	w.dry = w.dry || slices.Contains(opts.DryRun, "All")
	res, name := w.req.res, w.req.name
	cur, ok := w.srv.state.objects[w.req.id()]
	if !ok {
		return nil, res.notFound(name)
	}
	pre := opts.Preconditions
	if has := cur.field("metadata.uid"); pre.UID != nil && *pre.UID != has {
		return nil, res.conflict(name, fmt.Sprintf("Precondition failed: UID in precondition: %s, UID in object meta: %s", *pre.UID, has))
	}
	if has := cur.field("metadata.resourceVersion"); pre.ResourceVersion != nil && *pre.ResourceVersion != has {
		return nil, res.conflict(name, fmt.Sprintf("Precondition failed: ResourceVersion in precondition: %s, ResourceVersion in object meta: %s", *pre.ResourceVersion, has))
	}
	if len(cur.finalizers()) > 0 {
		if cur.deleting() {
			return cur, nil
		}
		d := cur.clone()
		m := d.meta()
		m["deletionTimestamp"], m["deletionGracePeriodSeconds"] = now(), json.Number("0")
		if res.generation {
			m["generation"] = next(m["generation"])
		}
		return w.put(d), nil
	}
	gone := w.put(nil)
	if w.srv.opts.DeletedObject {
		return gone, nil
	}
	return &Status{
		Kind: "Status", APIVersion: "v1", Status: "Success",
		Details: &Details{Name: name, Group: res.group, Kind: res.plural, UID: gone.field("metadata.uid")},
	}, nil
}

func now() string { return time.Now().UTC().Format(time.RFC3339) }

func next(n any) json.Number {
	text, _ := n.(json.Number)
	i, _ := strconv.Atoi(string(text))
	return json.Number(strconv.Itoa(i + 1))
}

func uid() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
