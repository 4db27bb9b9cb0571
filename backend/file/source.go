package file

import (
	"context"
	"errors"
	"iter"
	"path/filepath"
	"sync"
	"time"

	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// Source lists and watches a folder of manifests. It is a
// reflector.ListWatcher[T].
type Source[T any] struct {
	dir     string
	key     func(T) string
	opts    Options
	watched reflector.ListWatcher[T]

	// turn is taken by whoever looks at the folder: a channel and no mutex, since
	// file systems may take their time, and who waits for them may be called off.
	turn    chan struct{}
	files   map[string]*file[T] // by name; guarded by turn
	holders map[string]string   // which file each key's object is taken from; by turn

	mu struct {
		sync.Mutex
		items      []object.Item[T] // what is in force, by key
		faults     []Fault          // by file and line
		generation uint64           // counts the changes of items
		look       time.Time        // when there is something to look at without a sign; zero is never
		deaf       bool             // there is no watch, and it was logged
	}
}

// New makes a source over the files of a folder; key names an object, by which
// it is known. The folder need not be there yet: until it is, List and Watch are
// errors, which a reflector retries.
//
// Options that make no sense are an error that wraps ErrInvalidOptions.
func New[T any](dir string, key func(T) string, opts *Options) (*Source[T], error) {
	o, err := resolve(opts)
	if dir == "" || key == nil {
		err = errors.Join(err, errors.New("file: New needs a folder and a key function"))
	}
	if err != nil {
		return nil, err
	}
	s := &Source[T]{dir: filepath.Clean(dir), key: key, opts: o,
		turn: make(chan struct{}, 1), files: map[string]*file[T]{}, holders: map[string]string{}}
	s.watched = reflector.Hint[T](lister[T]{s}, s.hints)
	return s, nil
}

// List answers what is in force, in one page. What is at fault with a file is no
// error here; see Faults.
func (s *Source[T]) List(ctx context.Context, opts reflector.ListOptions) (reflector.Page[T], error) {
	return lister[T]{s}.List(ctx, opts)
}

// Watch tells the full state at the beginning, and again at each change.
func (s *Source[T]) Watch(ctx context.Context, opts reflector.WatchOptions) iter.Seq2[reflector.Batch[T], error] {
	return s.watched.Watch(ctx, opts)
}

// Powers: the initial list is streamed; there are no positions.
func (s *Source[T]) Powers() reflector.Powers[T] { return s.watched.Powers() }

// Faults lists what is at fault now, by file and line, as of the last look at the
// folder. It may be called at any time and by anybody.
func (s *Source[T]) Faults() []Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Fault(nil), s.mu.faults...)
}

// lister is the part of a source that reflector.Hint builds on.
type lister[T any] struct{ s *Source[T] }

func (l lister[T]) List(ctx context.Context, opts reflector.ListOptions) (reflector.Page[T], error) {
	if err := l.s.refresh(ctx); err != nil {
		return reflector.Page[T]{}, err
	}
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	// A copy: the caller may do with it what it likes.
	page := reflector.Page[T]{Items: append([]object.Item[T](nil), l.s.mu.items...)}
	if opts.KeysOnly {
		for i := range page.Items {
			var none T
			page.Items[i].Object = none
		}
	}
	return page, nil
}

func (l lister[T]) Watch(ctx context.Context, opts reflector.WatchOptions) iter.Seq2[reflector.Batch[T], error] {
	return l.s.Watch(ctx, opts)
}

func (l lister[T]) Powers() reflector.Powers[T] { return reflector.Powers[T]{KeysOnly: true} }
