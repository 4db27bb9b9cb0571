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
		w := &folder{}
		defer w.close()
		if err := s.renew(w, true); err != nil {
			yield("", err)
			return
		}
		told, _ := s.state() // before the list that follows: it may see more, but not less
		if !yield("", nil) {
			return
		}
		poll := time.NewTicker(s.opts.Poll)
		defer poll.Stop()
		for {
			lost := !s.wait(ctx, w, poll.C)
			if ctx.Err() != nil {
				return
			}
			err := s.renew(w, lost)
			if err == nil {
				err = s.refresh(ctx)
			}
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				yield("", err)
				return
			}
			if now, _ := s.state(); now != told {
				if told = now; !yield("", nil) {
					return
				}
			}
		}
	}
}

// wait returns when there is something to look at: a sign, the next poll, or that
// a file has been gone for long enough. It is false when the watch has come to
// its end.
func (s *Source[T]) wait(ctx context.Context, w *folder, poll <-chan time.Time) bool {
	var gone <-chan time.Time
	if _, look := s.state(); !look.IsZero() {
		t := time.NewTimer(time.Until(look))
		defer t.Stop()
		gone = t.C
	}
	select {
	case <-ctx.Done():
	case <-poll:
	case <-gone:
	case e := <-w.events:
		return s.settle(ctx, w, e)
	case err := <-w.errors:
		// Of an overflow of the kernel's queue it is enough to know that something
		// happened.
		return errors.Is(err, fsnotify.ErrEventOverflow)
	}
	return true
}

func (s *Source[T]) state() (generation uint64, look time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.generation, s.mu.look
}

// folder is a watch on the folder as it was found. Where no watch can be had its
// channels are nil, and the poll alone has to do.
type folder struct {
	watcher *fsnotify.Watcher
	events  <-chan fsnotify.Event
	errors  <-chan error
	info    os.FileInfo
}

func (w *folder) close() {
	if w.watcher != nil {
		w.watcher.Close()
	}
	*w = folder{}
}

// renew moves the watch to the folder that now has the name, if that is another
// one than before, if the watch was lost, or if there was none. That the folder is
// not there is an error; that it cannot be watched is not.
func (s *Source[T]) renew(w *folder, lost bool) error {
	info, err := os.Stat(s.dir)
	switch {
	case err != nil:
		return fmt.Errorf("file: %w", err)
	case !info.IsDir():
		return fmt.Errorf("file: %s is no folder", s.dir)
	case !lost && w.watcher != nil && os.SameFile(info, w.info):
		return nil
	}
	w.close()
	watcher, err := s.watchFolder()
	s.sayDeaf(err)
	if err == nil {
		*w = folder{watcher, watcher.Events, watcher.Errors, info}
	}
	return nil
}

// watchFolder watches the folder and, where its name is a symbolic link, the folder
// that the link is in: the link may be made to point elsewhere.
func (s *Source[T]) watchFolder() (*fsnotify.Watcher, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	err = w.Add(s.dir)
	if link, lerr := os.Lstat(s.dir); err == nil && lerr == nil && link.Mode()&os.ModeSymlink != 0 {
		err = w.Add(filepath.Dir(s.dir))
	}
	if err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// sayDeaf logs once that there is no watch, and once that there is one again.
func (s *Source[T]) sayDeaf(err error) {
	s.mu.Lock()
	changed := s.mu.deaf != (err != nil)
	s.mu.deaf = err != nil
	s.mu.Unlock()
	switch {
	case changed && err != nil:
		s.opts.Logger.Warn("the folder cannot be watched; it is polled", "folder", s.dir, "every", s.opts.Poll, "error", err)
	case changed:
		s.opts.Logger.Info("the folder is watched again", "folder", s.dir)
	}
}

// settle waits until the folder is quiet, but not for ever. It is false when one of
// the events was the end of the folder itself: one that is made anew may have the
// number of the old one, and then only this tells them apart.
func (s *Source[T]) settle(ctx context.Context, w *folder, e fsnotify.Event) bool {
	last := time.NewTimer(10 * s.opts.Settle)
	defer last.Stop()
	quiet := time.NewTimer(s.opts.Settle)
	defer quiet.Stop()
	there := true
	for {
		there = there && !(e.Name == s.dir && e.Has(fsnotify.Remove))
		select {
		case <-ctx.Done():
			return there
		case e = <-w.events:
			quiet.Reset(s.opts.Settle)
		case <-quiet.C:
			return there
		case <-last.C:
			return there
		}
	}
}
