package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// file is what is known of one file.
type file[T any] struct {
	stamp   stamp
	entries []entry[T] // as of when it was last good
	fault   error      // of the last reading; nil when that was good
	gone    time.Time  // since when it is not there; zero while it is
}

// keep is how long a file that went is still in force. Who replaces a file may take
// the old one away first, and what it declares is not to be torn down for that.
func (s *Source[T]) keep() time.Duration { return 10 * s.opts.Settle }

// stamp tells a file's content from a later one, without reading it.
type stamp struct {
	info fs.FileInfo // of what a link points to; nil when that cannot be told
	err  error       // why
	read time.Time   // when
}

// A file that was changed so shortly before it was read may be changed again
// without its time telling: clocks of file systems are coarse.
const racy = 2 * time.Second

func (a stamp) same(b stamp) bool {
	if a.info == nil || b.info == nil {
		return a.info == nil && b.info == nil && a.err.Error() == b.err.Error()
	}
	return os.SameFile(a.info, b.info) && a.info.Size() == b.info.Size() &&
		a.info.ModTime().Equal(b.info.ModTime()) && a.info.Mode() == b.info.Mode()
}

// current says that what was read then need not be read again.
func (a stamp) current(b stamp) bool {
	return a.info != nil && a.same(b) && a.read.Sub(a.info.ModTime()).Abs() > racy
}

// refresh looks at the folder and reads what has changed. An error is the
// folder's, or ctx's; nothing has changed then.
func (s *Source[T]) refresh(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	stamps, err := s.look()
	if err != nil {
		return err
	}
	// A folder whose files change while they are read is read again, so that what
	// comes to be in force is of one time. One that never holds still is taken as it is.
	for range 5 {
		if err := s.readAll(ctx, stamps); err != nil {
			return err
		}
		again, err := s.look()
		if err != nil {
			return err
		}
		still := sameStamps(stamps, again)
		if stamps = again; still {
			break
		}
	}
	s.merge(s.forget(stamps))
	return nil
}

// forget drops the files that have been gone for long enough, and says when the
// next one will have been.
func (s *Source[T]) forget(stamps map[string]stamp) (next time.Time) {
	now := time.Now()
	for name, f := range s.files {
		switch _, exists := stamps[name]; {
		case exists:
			f.gone = time.Time{}
			continue
		case f.gone.IsZero():
			f.gone = now
		case now.Sub(f.gone) >= s.keep():
			delete(s.files, name)
			continue
		}
		if end := f.gone.Add(s.keep()); next.IsZero() || end.Before(next) {
			next = end
		}
	}
	return next
}

func sameStamps(a, b map[string]stamp) bool {
	if len(a) != len(b) {
		return false
	}
	for name, stamp := range a {
		if other, ok := b[name]; !ok || !stamp.same(other) {
			return false
		}
	}
	return true
}

// look lists the files of the folder that count.
func (s *Source[T]) look() (map[string]stamp, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("file: %w", err)
	}
	stamps := map[string]stamp{}
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, ".") || !slices.Contains([]string{".yaml", ".yml", ".json"}, ending(name)) {
			continue
		}
		info, err := os.Stat(filepath.Join(s.dir, name))
		switch {
		case err == nil && info.IsDir():
			continue
		case errors.Is(err, fs.ErrNotExist):
			if _, err := os.Lstat(filepath.Join(s.dir, name)); errors.Is(err, fs.ErrNotExist) {
				continue // went just now; a link that leads nowhere is another matter
			}
		case err == nil && !info.Mode().IsRegular():
			info, err = nil, errNotRegular
		}
		if err != nil {
			info = nil
		}
		stamps[name] = stamp{info: info, err: err, read: time.Now()}
	}
	return stamps, nil
}

func (s *Source[T]) readAll(ctx context.Context, stamps map[string]stamp) error {
	for name, now := range stamps {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		f := s.files[name]
		if f == nil {
			f = &file[T]{entries: s.renamed(now)}
			s.files[name] = f
		} else if f.stamp.current(now) {
			continue
		}
		content, err := s.read(name, now)
		if err != nil {
			f.stamp, f.fault = stamp{}, err // tried again at every look
			continue
		}
		f.stamp = now
		entries, err := parse(name, content, s.key)
		if f.fault = err; err == nil {
			f.entries = entries
		}
	}
	return nil
}

// renamed answers what a new file held under its old name: it may be at fault
// since before, and a new name makes that neither better nor worse.
func (s *Source[T]) renamed(now stamp) []entry[T] {
	for _, f := range s.files {
		if now.info != nil && f.stamp.info != nil && os.SameFile(f.stamp.info, now.info) {
			return f.entries
		}
	}
	return nil
}

// readTime is how long the reading of a file may take where that can be bounded.
const readTime = 2 * time.Second

// read reads a whole file. What looks like a file need not be one by the time it
// is opened, nor end where it says: to open it must not block, and to read it
// neither for ever nor without bound.
func (s *Source[T]) read(name string, now stamp) ([]byte, error) {
	if now.err != nil {
		return nil, now.err
	}
	f, err := os.OpenFile(filepath.Join(s.dir, name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	f.SetReadDeadline(time.Now().Add(readTime)) // an error: it is no kind of file that would block
	content, err := io.ReadAll(io.LimitReader(f, s.opts.MaxSize+1))
	if err == nil && int64(len(content)) > s.opts.MaxSize {
		err = fmt.Errorf("%w: the most is %d bytes", ErrTooLarge, s.opts.MaxSize)
	}
	return content, err
}

var errNotRegular = fmt.Errorf("%w: not a regular file", ErrInvalid)
