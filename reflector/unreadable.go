package reflector

import (
	"errors"
	"fmt"
)

// ErrUnreadable: an object is there and cannot be decoded: what Powers.Get answers of
// it, and what a list or watch fails with that tells of it ([Fault]) where
// Options.Strict does not let that pass.
var ErrUnreadable = errors.New("reflector: an object cannot be read")

// strict refuses faults where the options do.
func (c *cycle[T]) strict(faults []Fault) error {
	if !c.opts.Strict || len(faults) == 0 {
		return nil
	}
	f := faults[0]
	return fmt.Errorf("%w: key %q at version %q, and %d others: %w", ErrUnreadable, f.Key, f.Version, len(faults)-1, f.Err)
}

// unreadable: a full state was committed in which just these could not be read.
func (t *tracker) unreadable(faults map[string]error) {
	t.mu.Lock()
	was := t.status.Unreadable
	t.status.Unreadable = faults
	t.mu.Unlock()
	for key, err := range faults {
		t.complain(was, key, err)
	}
}

// reread brings the list of what cannot be read up to a live batch, and says whether
// there is any.
func reread[T any](t *tracker, b Batch[T]) (any bool) {
	t.mu.Lock()
	was := t.status.Unreadable
	now := make(map[string]error, len(was)+len(b.Faults))
	for key, err := range was {
		now[key] = err
	}
	for i := range b.Events {
		delete(now, b.Events[i].Key)
	}
	for _, f := range b.Faults {
		now[f.Key] = f.Err
	}
	t.status.Unreadable = now
	t.mu.Unlock()
	for _, f := range b.Faults {
		t.complain(was, f.Key, f.Err)
	}
	return len(now) > 0
}

// complain logs what was not known before.
func (t *tracker) complain(was map[string]error, key string, err error) {
	if text(was[key]) != text(err) {
		t.log.Warn("an object cannot be read, its last good state is kept", "key", key, "err", err)
	}
}
