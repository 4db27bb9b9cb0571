package kube

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// Options are the choices of a Store. nil and the zero value are the defaults.
type Options struct {
	// Selector is a label selector ("team=red"). What does not match is not shown,
	// and what ceases to match is deleted as far as a watch can tell. Writes do not
	// look at it. Defaults to "": everything.
	Selector string
}

// Store is the objects of one collection.
type Store[T any] struct {
	client   *http.Client
	url      string // up to what follows the version: …/api/v1
	ns       string // "" when keys name it, or there is none
	resource string
	selector string
	dry      bool
}

var _ backend.Backend[any] = (*Store[any])(nil)

// New makes a store of the collection at the URL. A nil client is
// http.DefaultClient. A URL that is none is told by the first call.
func New[T any](client *http.Client, collection string, opts *Options) *Store[T] {
	s := &Store[T]{client: client}
	if s.client == nil {
		s.client = http.DefaultClient
	}
	if opts != nil {
		s.selector = opts.Selector
	}
	s.url, s.resource = cut(strings.TrimRight(collection, "/"))
	if base, ns := cut(s.url); strings.HasSuffix(base, "/namespaces") {
		s.url, s.ns = strings.TrimSuffix(base, "/namespaces"), ns
	}
	return s
}

func cut(path string) (before, last string) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 0)], path[i+1:]
}

// Powers tells what the store can do: all but Progress, as bookmarks come when
// the server likes.
func (s *Store[T]) Powers() reflector.Powers[T] {
	return reflector.Powers[T]{
		Paged:         true,
		SnapshotPages: true,
		Initial:       true,
		ResumeProven:  true,
		KeysOnly:      true,
		Compare:       compare,
		Reached: func(c reflector.Cursor, v object.Version) bool {
			n := number(string(v))
			return n > 0 && number(string(c)) >= n
		},
		Head: s.head,
		Get:  s.Get,
	}
}

// number is 0 for what is no resourceVersion: none is ever 0.
func number(version string) uint64 {
	n, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func compare(a, b reflector.Cursor) int {
	x, y := number(string(a)), number(string(b))
	if x == 0 || y == 0 {
		return 0
	}
	return cmp.Compare(x, y)
}

// collection is the URL of all objects, or of one namespace's.
func (s *Store[T]) collection(ns string) string {
	if ns == "" {
		return s.url + "/" + s.resource
	}
	return s.url + "/namespaces/" + url.PathEscape(ns) + "/" + s.resource
}

// place splits a key. Not every string can be an object's name: some would lead to
// another URL, and nothing is there.
func (s *Store[T]) place(key string) (ns, name string, ok bool) {
	ns, name = s.ns, key
	if before, after, both := strings.Cut(key, "/"); both && s.ns == "" {
		if ns, name = before, after; !plain(ns) {
			return ns, name, false
		}
	}
	return ns, name, plain(name)
}

func plain(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.Contains(name, "/")
}

// call is one request, and its answer when that is a 2xx. The caller closes the
// body.
func (s *Store[T]) call(ctx context.Context, method, target string, query url.Values, header http.Header, body []byte) (resp *http.Response, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err // and nothing was sent
	}
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for name := range header {
		req.Header.Set(name, header.Get(name))
	}
	resp, err = s.client.Do(req)
	if err != nil {
		return nil, lost(method, err)
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, refused(resp)
}

// fetch is call with the whole answer.
func (s *Store[T]) fetch(ctx context.Context, method, target string, query url.Values, header http.Header, body []byte) ([]byte, error) {
	resp, err := s.call(ctx, method, target, query, header, body)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, lost(method, err)
	}
	return text, nil
}

// meta is what the store must know of an object.
type meta struct {
	Name              string
	Namespace         string
	UID               string
	ResourceVersion   string
	DeletionTimestamp string
	Finalizers        []string
	Annotations       map[string]string
}

// errUndecodable: an object is no T. Its key, version and ID are known nevertheless.
var errUndecodable = errors.New("undecodable")

// item decodes an object. Any other error than errUndecodable is of what is none.
func (s *Store[T]) item(text []byte, keysOnly bool) (object.Item[T], meta, error) {
	var head struct{ Metadata meta }
	var item object.Item[T]
	if err := json.Unmarshal(text, &head); err != nil {
		return item, meta{}, err
	}
	m := head.Metadata
	item.Key, item.Version, item.ID = m.Name, object.Version(m.ResourceVersion), m.UID
	if s.ns == "" && m.Namespace != "" {
		item.Key = m.Namespace + "/" + m.Name
	}
	if keysOnly {
		return item, m, nil
	}
	var obj T
	if err := json.Unmarshal(text, &obj); err != nil {
		if item.Key != "" && item.Version != "" {
			err = fmt.Errorf("object %q, version %s: %w: %w", item.Key, item.Version, errUndecodable, err)
		}
		return item, m, err
	}
	item.Object = obj
	return item, m, nil
}

// fault names what is there and can't be decoded.
func fault[T any](item object.Item[T], err error) reflector.Fault {
	return reflector.Fault{Key: item.Key, Version: item.Version, Err: err}
}
