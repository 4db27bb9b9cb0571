package file

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// hints says when there is something to look at; reflector.Hint makes a watch of
// it. The first hint says that from now on nothing is missed.
func (s *Source[T]) hints(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		w, err := s.watchFolder()
		if err != nil {
			yield("", err)
			return
		}
		defer func() { w.Close() }()
		told := s.generation() // before the list that follows: it may see more, but not less
		if !yield("", nil) {
			return
		}
		poll := time.NewTicker(s.opts.Poll)
		defer poll.Stop()
		for {
			lost := false // the watch has come to its end
			select {
			case <-ctx.Done():
				return
			case <-poll.C:
			case e := <-w.Events:
				lost = s.settle(ctx, w, e)
			case err := <-w.Errors:
				// Of an overflow of the kernel's queue it is enough to know that
				// something happened.
				lost = !errors.Is(err, fsnotify.ErrEventOverflow)
			}
			if ctx.Err() != nil {
				return
			}
			err := s.renew(w, lost)
			if err == nil {
				err = s.refresh(ctx)
			}
			if err != nil {
				yield("", err)
				return
			}
			if now := s.generation(); now != told {
				if told = now; !yield("", nil) {
					return
				}
			}
		}
	}
}

func (s *Source[T]) generation() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.generation
}

// folder is a watch on the folder as it was found.
type folder struct {
	*fsnotify.Watcher
	info os.FileInfo
}

// watchFolder watches the folder and, where its name is a symbolic link, the folder
// that the link is in: the link may be made to point elsewhere.
func (s *Source[T]) watchFolder() (*folder, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("file: watch: %w", err)
	}
	err = w.Add(s.dir)
	if link, lerr := os.Lstat(s.dir); err == nil && lerr == nil && link.Mode()&os.ModeSymlink != 0 {
		err = w.Add(filepath.Dir(s.dir))
	}
	info, serr := os.Stat(s.dir)
	if err = errors.Join(err, serr); err != nil {
		w.Close()
		return nil, fmt.Errorf("file: watch %s: %w", s.dir, err)
	}
	return &folder{w, info}, nil
}

// renew moves the watch to the folder that now has the name, if that is another
// one than before, or if the watch was lost.
func (s *Source[T]) renew(w *folder, lost bool) error {
	info, err := os.Stat(s.dir)
	if err != nil {
		return fmt.Errorf("file: %w", err)
	}
	if !lost && os.SameFile(info, w.info) {
		return nil
	}
	fresh, err := s.watchFolder()
	if err != nil {
		return err
	}
	w.Close()
	*w = *fresh
	return nil
}

// settle waits until the folder is quiet, but not for ever. It says whether one of
// the events was the end of the folder itself: one that is made anew may have the
// number of the old one, and then only this tells them apart.
func (s *Source[T]) settle(ctx context.Context, w *folder, e fsnotify.Event) (lost bool) {
	last := time.NewTimer(10 * s.opts.Settle)
	defer last.Stop()
	quiet := time.NewTimer(s.opts.Settle)
	defer quiet.Stop()
	for {
		lost = lost || e.Name == s.dir && e.Has(fsnotify.Remove)
		select {
		case <-ctx.Done():
			return lost
		case e = <-w.Events:
			quiet.Reset(s.opts.Settle)
		case <-quiet.C:
			return lost
		case <-last.C:
			return lost
		}
	}
}
