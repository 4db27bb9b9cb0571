package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// file is what is known of one file.
type file[T any] struct {
	stamp   stamp
	entries []entry[T] // as of when it was last good
	fault   error      // of the last reading; nil when that was good
}

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
// folder's; nothing has changed then.
func (s *Source[T]) refresh(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	stamps, err := s.look()
	if err != nil {
		return err
	}
	// A folder whose files change while they are read is read again, so that what
	// comes to be in force is of one time. One that never holds still is taken as it is.
	for range 5 {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		s.readLocked(stamps)
		again, err := s.look()
		if err != nil {
			return err
		}
		still := sameStamps(stamps, again)
		if stamps = again; still {
			break
		}
	}
	for name := range s.mu.files {
		if _, exists := stamps[name]; !exists {
			delete(s.mu.files, name)
		}
	}
	s.mergeLocked()
	return nil
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
		if strings.HasPrefix(name, ".") || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name)) {
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
			info, err = nil, fmt.Errorf("%w: not a regular file", ErrInvalid) // to open a pipe would block
		}
		if err != nil {
			info = nil
		}
		stamps[name] = stamp{info: info, err: err, read: time.Now()}
	}
	return stamps, nil
}

func (s *Source[T]) readLocked(stamps map[string]stamp) {
	for name, now := range stamps {
		f := s.mu.files[name]
		if f == nil {
			f = &file[T]{}
			s.mu.files[name] = f
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
}

func (s *Source[T]) read(name string, now stamp) ([]byte, error) {
	if now.err != nil {
		return nil, now.err
	}
	if now.info.Size() > s.opts.MaxSize {
		return nil, fmt.Errorf("%w: %d bytes, the most is %d", ErrTooLarge, now.info.Size(), s.opts.MaxSize)
	}
	return os.ReadFile(filepath.Join(s.dir, name))
}
