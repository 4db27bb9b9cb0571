package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/patch"
	"github.com/homeostat/homeostat/retry"
)

// Create stores a new object under the key, whatever name, uid and
// resourceVersion obj has.
func (s *Store[T]) Create(ctx context.Context, key string, obj T) (object.Item[T], error) {
	if key == "" {
		return object.Item[T]{}, failed("create", key, "", "", backend.ErrNoKey)
	}
	ns, _, ok := s.place(key)
	if !ok {
		return object.Item[T]{}, failed("create", key, "", "", errName)
	}
	body, err := s.body(key, obj, "", "")
	if err != nil {
		return object.Item[T]{}, failed("create", key, "", "", err)
	}
	item, err := s.write(ctx, http.MethodPost, s.collection(ns), nil, body)
	if err != nil {
		return object.Item[T]{}, failed("create", key, "", "", nowhere(err))
	}
	if s.dry {
		item.Version, item.ID = "", ""
	}
	return item, nil
}

// Update replaces an object.
func (s *Store[T]) Update(ctx context.Context, item object.Item[T]) (object.Item[T], error) {
	body, err := s.body(item.Key, item.Object, item.Version, item.ID)
	return s.change(ctx, "update", http.MethodPut, item.Key, item.Version, "application/json", body, err)
}

// Patch sends the patch itself: the server applies it. A kind of patch that the
// server does not know is errors.ErrUnsupported.
func (s *Store[T]) Patch(ctx context.Context, key string, p patch.Patch, v object.Version) (object.Item[T], error) {
	var body []byte
	var kind string
	err := error(patch.ErrBadPatch)
	if p != nil {
		kind = p.MediaType()
		body, err = guarded(p, v)
	}
	return s.change(ctx, "patch", http.MethodPatch, key, v, kind, body, err)
}

// change is Update and Patch.
func (s *Store[T]) change(ctx context.Context, op, method, key string, v object.Version, kind string, body []byte, err error) (object.Item[T], error) {
	ns, name, ok := s.place(key)
	switch {
	case v == "":
		err = backend.ErrNoVersion
	case err == nil && !ok:
		err = backend.ErrNotFound
	}
	if err != nil {
		return object.Item[T]{}, failed(op, key, v, "", err)
	}
	header := http.Header{"Content-Type": {kind}}
	item, err := s.write(ctx, method, s.collection(ns)+"/"+url.PathEscape(name), header, body)
	if errors.Is(err, backend.ErrConflict) {
		return object.Item[T]{}, s.conflict(ctx, op, key, v, err)
	}
	if err != nil {
		return object.Item[T]{}, failed(op, key, v, "", err)
	}
	return item, nil
}

// conflict says what a conflict was about. A write to an object that is gone is
// one to the server when it names a uid.
func (s *Store[T]) conflict(ctx context.Context, op, key string, v object.Version, err error) error {
	cur, readErr := s.stored(ctx, key)
	if errors.Is(readErr, backend.ErrNotFound) {
		err = readErr
	}
	return failed(op, key, v, cur.Version, err)
}

// Delete deletes the object as it was read right before: the server tells neither
// what it deleted nor under which version, so the answer has no version. Where it
// answers the object (because of finalizers, or by its kind) that is what is
// answered here. What is no T is answered without its object.
func (s *Store[T]) Delete(ctx context.Context, key string, v object.Version) (object.Item[T], error) {
	if v == "" {
		return object.Item[T]{}, failed("delete", key, v, "", backend.ErrNoVersion)
	}
	for {
		cur, err := s.stored(ctx, key)
		if errors.Is(err, errUndecodable) { // it can be deleted all the same
			err = nil
		}
		if err == nil && v != object.Any && v != cur.Version {
			err = backend.ErrConflict
		}
		if err != nil {
			return object.Item[T]{}, failed("delete", key, v, cur.Version, err)
		}
		gone, err := s.delete(ctx, cur)
		switch {
		case err == nil:
			return gone, nil
		case !errors.Is(err, backend.ErrConflict):
			return object.Item[T]{}, failed("delete", key, v, cur.Version, err)
		case v != object.Any || ctx.Err() != nil:
			return object.Item[T]{}, s.conflict(ctx, "delete", key, v, err)
		}
	}
}

// delete deletes cur and nothing else.
func (s *Store[T]) delete(ctx context.Context, cur object.Item[T]) (object.Item[T], error) {
	ns, name, _ := s.place(cur.Key)
	body, err := json.Marshal(map[string]any{
		"kind": "DeleteOptions", "apiVersion": "v1",
		"preconditions": map[string]any{"uid": cur.ID, "resourceVersion": cur.Version},
	})
	if err != nil {
		return cur, err
	}
	text, err := s.fetch(ctx, http.MethodDelete, s.collection(ns)+"/"+url.PathEscape(name), s.how(), nil, body)
	if err != nil {
		return cur, err
	}
	var answer struct{ Kind string }
	if err := json.Unmarshal(text, &answer); err != nil {
		return cur, fmt.Errorf("%w: %w", backend.ErrOutcomeUnknown, err)
	}
	if s.dry {
		return cur, nil
	}
	if answer.Kind == "Status" {
		cur.Version = ""
		return cur, nil
	}
	gone, m, err := s.item(text, false)
	if err != nil && !errors.Is(err, errUndecodable) {
		return cur, fmt.Errorf("%w: %w", backend.ErrOutcomeUnknown, err)
	}
	if soft := m.DeletionTimestamp != "" && len(m.Finalizers) > 0; !soft && gone.Version == cur.Version {
		gone.Version = "" // an older server: this is not the version of the delete
	}
	return gone, nil
}

// DryRun is the same store with writes that the server checks and answers alone.
func (s *Store[T]) DryRun() (backend.Backend[T], error) {
	dry := *s
	dry.dry = true
	return &dry, nil
}

func (s *Store[T]) how() url.Values {
	if s.dry {
		return url.Values{"dryRun": {"All"}}
	}
	return nil
}

var errName = retry.Permanent(errors.New("kube: no object can have this name"))

func (s *Store[T]) write(ctx context.Context, method, target string, header http.Header, body []byte) (object.Item[T], error) {
	text, err := s.fetch(ctx, method, target, s.how(), header, body)
	if err != nil {
		return object.Item[T]{}, err
	}
	item, _, err := s.item(text, false)
	if err != nil { // it was written, but what?
		err = fmt.Errorf("%w: %w", backend.ErrOutcomeUnknown, err)
	}
	return item, err
}

// body is obj with the name, and with no other precondition than those given: an
// object that was read has those of its own.
func (s *Store[T]) body(key string, obj T, v object.Version, id string) ([]byte, error) {
	ns, name, _ := s.place(key)
	set := map[string]string{"name": name, "namespace": ns, "uid": id, "resourceVersion": ""}
	if v != object.Any {
		set["resourceVersion"] = string(v)
	}
	text, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	return merged(text, set)
}

// merged is a JSON object with some members of its metadata set, or taken away
// where they are "".
func merged(text []byte, set map[string]string) ([]byte, error) {
	var doc, metadata map[string]json.RawMessage
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(doc["metadata"], &metadata); doc["metadata"] != nil && err != nil {
		return nil, err
	}
	if metadata == nil {
		metadata = map[string]json.RawMessage{}
	}
	for name, value := range set {
		if value == "" {
			delete(metadata, name)
			continue
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		metadata[name] = text
	}
	inner, err := json.Marshal(metadata)
	if err != nil {
		return nil, err
	}
	if doc == nil {
		doc = map[string]json.RawMessage{}
	}
	doc["metadata"] = inner
	return json.Marshal(doc)
}

// guarded is the patch with the version as its precondition: a server compares the
// resourceVersion that a patch sets with the one that there is. What a merge patch
// says of the object's identity is left out, as Create and Update do: it is in the
// difference of any two objects of which one was not read.
func guarded(p patch.Patch, v object.Version) ([]byte, error) {
	text, err := p.MarshalJSON()
	if err != nil {
		return nil, err
	}
	switch p.MediaType() {
	case patch.MergeMediaType:
		return mergeGuarded(text, v)
	case patch.JSONMediaType:
		if v == object.Any {
			return text, nil
		}
		var ops []json.RawMessage
		if err := json.Unmarshal(text, &ops); err != nil {
			return nil, err
		}
		op, err := json.Marshal(map[string]string{"op": "add", "path": "/metadata/resourceVersion", "value": string(v)})
		if err != nil {
			return nil, err
		}
		return json.Marshal(append(ops, op))
	}
	if v == object.Any {
		return text, nil
	}
	return nil, fmt.Errorf("%w: a precondition for a patch of type %s", errors.ErrUnsupported, p.MediaType())
}

func mergeGuarded(text []byte, v object.Version) ([]byte, error) {
	var named map[string]json.RawMessage
	if err := json.Unmarshal(text, &named); err != nil {
		return nil, err
	}
	meta, touched := named["metadata"]
	if string(meta) == "null" { // nor can the rest of it be taken away by name
		return nil, fmt.Errorf("%w: a patch that takes away the metadata", errors.ErrUnsupported)
	}
	if v == object.Any {
		if !touched {
			return text, nil
		}
		v = ""
	}
	return merged(text, map[string]string{"name": "", "namespace": "", "uid": "", "resourceVersion": string(v)})
}
