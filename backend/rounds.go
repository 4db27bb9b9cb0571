package backend

import (
	"context"
	"fmt"
	"time"

	"github.com/homeostat/homeostat/retry"
)

// rounds counts how often a read and a write were tried because somebody else
// wrote in between. Each such round is somebody's success, so the first ones go
// on at once; a store that answers a conflict to everything is not spun on.
type rounds struct{ n int }

// quick is how many rounds need no pause. A pause in every round would let a
// busy writer starve the others.
const quick = 8

// again waits for the next round. Its error is the context's and err's.
func (r *rounds) again(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		if r.n++; r.n <= quick {
			return nil
		}
		pause := retry.Backoff{Base: time.Millisecond, Max: time.Second}
		timer := time.NewTimer(pause.Delay(r.n - quick))
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
		}
	}
	return fmt.Errorf("%w after %d rounds, the last: %w", ctx.Err(), r.n, err)
}
