package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// keysOnly asks for the metadata alone.
var keysOnly = http.Header{"Accept": {"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"}}

type list struct {
	Kind, APIVersion string
	Metadata         struct{ ResourceVersion, Continue string }
	Items            []json.RawMessage
}

func (s *Store[T]) query() url.Values {
	q := url.Values{}
	if s.selector != "" {
		q.Set("labelSelector", s.selector)
	}
	return q
}

// list asks for one page.
func (s *Store[T]) list(ctx context.Context, ns string, q url.Values, header http.Header) (list, error) {
	var l list
	text, err := s.fetch(ctx, http.MethodGet, s.collection(ns), q, header, nil)
	if err == nil {
		err = json.Unmarshal(text, &l)
	}
	if err == nil && (!strings.HasSuffix(l.Kind, "List") || number(l.Metadata.ResourceVersion) == 0) {
		err = fmt.Errorf("kube: no list but a %q, at resourceVersion %q", l.Kind, l.Metadata.ResourceVersion)
	}
	return l, nowhere(err)
}

// List answers a page. All pages of a list show the state of the first; when the
// server has forgotten that, the next page is ErrExpired.
func (s *Store[T]) List(ctx context.Context, opts reflector.ListOptions) (reflector.Page[T], error) {
	page, err := s.page(ctx, opts)
	if err != nil {
		return reflector.Page[T]{}, fmt.Errorf("kube: list %s: %w", s.resource, err)
	}
	return page, nil
}

func (s *Store[T]) page(ctx context.Context, opts reflector.ListOptions) (page reflector.Page[T], err error) {
	q := s.query()
	if opts.Limit > 0 {
		q.Set("limit", strconv.Itoa(opts.Limit))
	}
	switch {
	case opts.Page != "":
		q.Set("continue", string(opts.Page))
	case opts.Freshness != reflector.Any:
	case number(string(opts.NotBefore)) > 0:
		q.Set("resourceVersion", string(opts.NotBefore))
		q.Set("resourceVersionMatch", "NotOlderThan")
	case opts.Limit <= 0: // the cache, which this asks for, knows no limits
		q.Set("resourceVersion", "0")
	}
	header := http.Header{}
	if opts.KeysOnly {
		header = keysOnly
	}
	l, err := s.list(ctx, s.ns, q, header)
	if refusal, ok := errors.AsType[*status](err); ok && opts.Page != "" && refusal.Code == http.StatusBadRequest {
		err = fmt.Errorf("%w: %w", reflector.ErrExpired, refusal) // it does not know the token
	}
	if err != nil {
		return page, err
	}
	page.Cursor = reflector.Cursor(l.Metadata.ResourceVersion)
	page.Next = reflector.PageToken(l.Metadata.Continue)
	if opts.NotBefore != "" && compare(page.Cursor, opts.NotBefore) < 0 {
		return page, fmt.Errorf("at %s, not yet at %s: %w", page.Cursor, opts.NotBefore, reflector.ErrFutureCursor)
	}
	page.Items = make([]object.Item[T], 0, len(l.Items))
	for _, text := range l.Items {
		item, _, err := s.item(l.typed(text), opts.KeysOnly)
		switch {
		case errors.Is(err, errUndecodable):
			page.Faults = append(page.Faults, fault(item, err))
		case err != nil:
			return page, err
		default:
			page.Items = append(page.Items, item)
		}
	}
	return page, nil
}

// typed is an item with the kind that a list leaves out: the object must be the
// one that Get and Watch give.
func (l list) typed(item json.RawMessage) []byte {
	var has struct{ Kind string }
	if json.Unmarshal(item, &has) != nil || has.Kind != "" || len(item) < 2 {
		return item
	}
	head := fmt.Sprintf(`{"kind":%q,"apiVersion":%q,`, strings.TrimSuffix(l.Kind, "List"), l.APIVersion)
	return append([]byte(head), item[1:]...)
}

// head is where the server stands: a list of next to nothing is at the latest
// resourceVersion.
func (s *Store[T]) head(ctx context.Context) (reflector.Cursor, error) {
	l, err := s.list(ctx, s.ns, url.Values{"limit": {"1"}}, keysOnly)
	if err != nil {
		return "", fmt.Errorf("kube: head of %s: %w", s.resource, err)
	}
	return reflector.Cursor(l.Metadata.ResourceVersion), nil
}

// Get reads one object; backend.ErrNotFound when there is none, or none that the
// selector selects.
func (s *Store[T]) Get(ctx context.Context, key string) (object.Item[T], error) {
	item, err := s.read(ctx, key)
	if err != nil {
		return object.Item[T]{}, failed("get", key, "", item.Version, err)
	}
	return item, nil
}

func (s *Store[T]) read(ctx context.Context, key string) (item object.Item[T], err error) {
	if s.selector == "" {
		return s.stored(ctx, key)
	}
	ns, name, ok := s.place(key)
	if !ok {
		return item, backend.ErrNotFound
	}
	// There is no selector for a get, but there is one for the name in a list.
	q := s.query()
	q.Set("fieldSelector", "metadata.name="+name)
	l, err := s.list(ctx, ns, q, nil)
	if err == nil && len(l.Items) == 0 {
		err = backend.ErrNotFound
	}
	if err != nil {
		return item, err
	}
	item, _, err = s.item(l.typed(l.Items[0]), false)
	return item, err
}

// stored reads one object, selected or not; errUndecodable comes with its key, version
// and ID.
func (s *Store[T]) stored(ctx context.Context, key string) (item object.Item[T], err error) {
	ns, name, ok := s.place(key)
	if !ok {
		return item, backend.ErrNotFound
	}
	text, err := s.fetch(ctx, http.MethodGet, s.collection(ns)+"/"+url.PathEscape(name), nil, nil, nil)
	if err != nil {
		return item, err
	}
	item, _, err = s.item(text, false)
	return item, err
}
