package consul

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/retry"
)

// Options are the choices of a Store. nil and the zero value are the defaults.
type Options struct {
	// Stale lets any server answer lists and watches, also one that lags behind.
	// Defaults to false: what is read is the latest.
	Stale bool
}

// Store is what lies under a prefix.
type Store[T any] struct {
	client  *http.Client
	address string
	prefix  string
	codec   object.Codec[T]
	stale   bool
}

var _ backend.Backend[any] = (*Store[any])(nil)

// New makes a store of what lies under prefix at the agent at address
// ("http://127.0.0.1:8500"). A nil client is http.DefaultClient, a nil codec
// object.JSON. An address that is none is told by the first call.
func New[T any](client *http.Client, address, prefix string, codec object.Codec[T], opts *Options) *Store[T] {
	s := &Store[T]{client: client, address: strings.TrimRight(address, "/"), prefix: prefix, codec: codec}
	if s.client == nil {
		s.client = http.DefaultClient
	}
	if s.codec == nil {
		s.codec = object.JSON[T]{}
	}
	if opts != nil {
		s.stale = opts.Stale
	}
	return s
}

// Powers tells what the store can do. It has no pages, so all of them show one
// state.
func (s *Store[T]) Powers() reflector.Powers[T] {
	return reflector.Powers[T]{
		SnapshotPages: true,
		Initial:       true,
		Progress:      true,
		StaleLists:    s.stale,
		Get:           s.Get,
	}
}

// entry is a key as Consul answers it.
type entry struct {
	Key                      string
	Value                    []byte
	CreateIndex, ModifyIndex uint64
}

// item is an entry as the contract has it, with an error without its object.
func (s *Store[T]) item(e entry) (object.Item[T], error) {
	item := object.Item[T]{
		Key:     strings.TrimPrefix(e.Key, s.prefix),
		Version: object.Version(decimal(e.ModifyIndex)),
		ID:      decimal(e.CreateIndex),
	}
	obj, err := s.codec.Decode(e.Value)
	if err != nil {
		return item, fmt.Errorf("consul: the value of %q, index %s: %w", e.Key, item.Version, err)
	}
	item.Object = obj
	return item, nil
}

// items are entries as the contract has them; those that cannot be decoded are
// faults.
func (s *Store[T]) items(entries []entry) (items []object.Item[T], faults []reflector.Fault) {
	for _, e := range entries {
		item, err := s.item(e)
		if err != nil {
			faults = append(faults, reflector.Fault{Key: item.Key, Version: item.Version, Err: err})
			continue
		}
		items = append(items, item)
	}
	return items, faults
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

// answer is the state at an index. The sum tells it from another one at the same
// index.
type answer struct {
	entries []entry
	index   uint64
	sum     [sha256.Size]byte
}

// cursor is "" for an index that cannot be waited for.
func (a answer) cursor() reflector.Cursor {
	if a.index == 0 {
		return ""
	}
	return reflector.Cursor(decimal(a.index))
}

// query asks for a key, or with recurse for all under it.
func (s *Store[T]) query(ctx context.Context, key string, q url.Values) (a answer, err error) {
	code, header, text, err := s.send(ctx, http.MethodGet, "/v1/kv/"+key, q, nil, http.StatusNotFound)
	if err != nil {
		return a, err
	}
	if a.index, err = strconv.ParseUint(header.Get("X-Consul-Index"), 10, 64); err != nil {
		return a, fmt.Errorf("consul: an answer %d without an index: %w", code, err)
	}
	a.sum = sha256.Sum256(text)
	if code == http.StatusNotFound {
		return a, nil
	}
	if err := json.Unmarshal(text, &a.entries); err != nil {
		return a, err
	}
	// What some make to have a folder is no object.
	a.entries = slices.DeleteFunc(a.entries, func(e entry) bool { return e.Key == s.prefix })
	return a, nil
}

// send is one request, and its answer when that is a 2xx or one of ok.
func (s *Store[T]) send(ctx context.Context, method, path string, q url.Values, body []byte, ok int) (int, http.Header, []byte, error) {
	if err := ctx.Err(); err != nil {
		return 0, nil, nil, err // and nothing was sent
	}
	target := s.address + (&url.URL{Path: path}).EscapedPath()
	if len(q) > 0 {
		target += "?" + q.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return 0, nil, nil, lost(method, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, nil, nil, lost(method, err)
	}
	if err := retry.Response(resp, ok); err != nil {
		err = fmt.Errorf("%w: %.200s", err, bytes.TrimSpace(text))
		if resp.StatusCode >= 500 {
			err = unknown(method, err)
		}
		return 0, nil, nil, err
	}
	return resp.StatusCode, resp.Header, text, nil
}

// lost is an answer that did not come. Only who had no connection knows that
// nothing was written.
func lost(method string, err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return err
	}
	return unknown(method, err)
}

func unknown(method string, err error) error {
	if method == http.MethodGet {
		return err
	}
	return fmt.Errorf("%w: %w", backend.ErrOutcomeUnknown, err)
}
