package bolt

import (
	"fmt"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// Store is a backend.Backend in a file. [Open] makes one.
type Store[T any] struct {
	file  *file
	codec object.Codec[T]
}

var _ backend.Backend[int] = (*Store[int])(nil)

// Open opens the store in the file at path, and makes the file if there is none;
// the directory has to exist. A nil codec is object.JSON; nil opts are the defaults.
// The codec has to read what was written in earlier runs.
func Open[T any](path string, codec object.Codec[T], opts *Options) (*Store[T], error) {
	if codec == nil {
		codec = object.JSON[T]{}
	}
	all, err := opts.filled()
	if err != nil {
		return nil, err
	}
	f, err := open(path, all)
	if err != nil {
		return nil, fmt.Errorf("bolt: open %q: %w", path, err)
	}
	return &Store[T]{file: f, codec: codec}, nil
}

// Close waits for the calls under way, closes the file and lets others open it. It
// ends all watches with [ErrClosed], as every later call; it does not wait for what
// they are ranged over by, and may be called there. Closing again does nothing and
// answers the same.
func (s *Store[T]) Close() error { return s.file.close() }

// encoded turns obj into bytes, and these into the object as stored: an object
// that can't be read again is refused here.
func (s *Store[T]) encoded(key string, obj T) (data []byte, stored T, err error) {
	defer caught("codec Encode", key, &err)
	if data, err = s.codec.Encode(obj); err != nil {
		return nil, stored, err
	}
	if len(data) > maxObject {
		return nil, stored, fmt.Errorf("%w: an object of %d bytes, at most %d", ErrTooLarge, len(data), maxObject)
	}
	stored, err = s.decoded(key, data)
	return data, stored, err
}

func (s *Store[T]) decoded(key string, data []byte) (obj T, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w: %w", ErrUndecodable, err)
		}
	}()
	defer caught("codec Decode", key, &err)
	return s.codec.Decode(data)
}

// item is what is told of r.
func (s *Store[T]) item(r record, keysOnly bool) (object.Item[T], error) {
	item := object.Item[T]{Key: r.key, Version: version(r.rev), ID: r.id}
	if keysOnly {
		return item, nil
	}
	var err error
	if item.Object, err = s.decoded(r.key, r.data); err != nil {
		return object.Item[T]{}, fmt.Errorf("object %q, version %s: %w", r.key, item.Version, err)
	}
	return item, nil
}

// fault names r, which is there and can't be read.
func fault(r record, err error) reflector.Fault {
	return reflector.Fault{Key: r.key, Version: version(r.rev), Err: err}
}

// event is what is told of c.
func (s *Store[T]) event(c change) (reflector.Event[T], error) {
	if c.gone {
		item, err := s.item(c.before, false)
		item.Key, item.Version, item.ID = c.before.key, version(c.rev), c.before.id
		// That the object is gone is true whether it can be read or not.
		return reflector.Event[T]{Op: reflector.OpDelete, Known: err == nil, Item: item}, nil
	}
	item, err := s.item(c.after, false)
	return reflector.Event[T]{Op: reflector.OpPut, Known: true, Item: item}, err
}
