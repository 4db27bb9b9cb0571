package main

import (
	"net/http"
	"strings"
	"time"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// Store is a backend.Backend over a [Service]. It keeps nothing between two calls,
// has no goroutine of its own, and may be used by any number of goroutines.
type Store[T any] struct {
	url      string
	codec    object.Codec[T]
	client   *http.Client
	timeout  time.Duration
	maxBytes int64
}

var _ backend.Backend[int] = (*Store[int])(nil)

// Options are the choices of [New].
type Options struct {
	// Client makes the requests. One with a Timeout of its own must leave time for
	// long polls. Defaults to http.DefaultClient.
	Client *http.Client
	// Timeout is how long an answer may take, not counting what the service was
	// asked to wait. Defaults to 30 s.
	Timeout time.Duration
	// MaxBytes is how long an answer may be. A list is one answer. Defaults to
	// 64 MiB.
	MaxBytes int64
}

// New makes a Store over the service at a URL. A nil codec is object.JSON; another
// one must make JSON too, since that is what the service keeps.
func New[T any](url string, codec object.Codec[T], opts *Options) *Store[T] {
	s := &Store[T]{
		url: strings.TrimSuffix(url, "/"), codec: codec,
		client: http.DefaultClient, timeout: 30 * time.Second, maxBytes: 64 << 20,
	}
	if codec == nil {
		s.codec = object.JSON[T]{}
	}
	if opts == nil {
		return s
	}
	if opts.Client != nil {
		s.client = opts.Client
	}
	if opts.Timeout > 0 {
		s.timeout = opts.Timeout
	}
	if opts.MaxBytes > 0 {
		s.maxBytes = opts.MaxBytes
	}
	return s
}

// Powers says what the service can do, and nothing that it can't.
func (s *Store[T]) Powers() reflector.Powers[T] {
	return reflector.Powers[T]{
		SnapshotPages: true, // there is only one
		Progress:      true, // a long poll that ends empty is a sign of life
		ResumeProven:  true, // a log that does not reach back says so
		Compare:       compare,
		Reached:       reached,
		Get:           s.Get,
	}
}

// item is an object as the library knows it.
func (s *Store[T]) item(rec record) (object.Item[T], error) {
	obj, err := s.codec.Decode(rec.Object)
	return object.Item[T]{Key: rec.Key, ID: rec.ID, Version: object.Version(rec.Version), Object: obj}, err
}
