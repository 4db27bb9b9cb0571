package bolt_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/backend/bolt"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
	"github.com/stretchr/testify/require"
)

// childEnv names the file that a child process writes to until it is killed.
const childEnv = "BOLT_TEST_CHILD"

const childHistory = 300

// child writes without end: its writers each have a few keys of their own, and
// print every write that was acknowledged: writer, number, what was done, key,
// version, ID.
func child(path string) error {
	seed, err := strconv.ParseUint(os.Getenv(childEnv+"_SEED"), 10, 64)
	if err != nil {
		return err
	}
	writers, err := strconv.Atoi(os.Getenv(childEnv + "_WRITERS"))
	if err != nil {
		return err
	}
	s, err := bolt.Open[pod](path, nil, &bolt.Options{History: childHistory})
	if err != nil {
		return err
	}
	ctx := context.Background()
	head, err := s.Powers().Head(ctx)
	if err != nil {
		return err
	}
	fmt.Println("open", head)
	var wg sync.WaitGroup
	var failed error
	for w := range writers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(w)))
			for n := 1; ; n++ {
				key := fmt.Sprintf("%d/%d", w, r.IntN(4))
				obj := pod{N: n, Tags: map[string]string{"pad": strings.Repeat("x", r.IntN(6000))}}
				done, it, err := put(ctx, s, key, obj, r.IntN(4) == 0)
				if err != nil {
					failed = err
					return
				}
				// One line in one write: a process that dies tells whole lines.
				os.Stdout.WriteString(fmt.Sprintln("acked", w, n, done, key, it.Version, it.ID))
			}
		})
	}
	wg.Wait()
	return failed
}

// put creates what is not there, and changes or deletes what is.
func put(ctx context.Context, s *bolt.Store[pod], key string, obj pod, remove bool) (string, item, error) {
	it, err := s.Create(ctx, key, obj)
	switch {
	case !errors.Is(err, backend.ErrExists):
		return "created", it, err
	case remove:
		it, err = s.Delete(ctx, key, object.Any)
		return "deleted", it, err
	}
	it, err = s.Update(ctx, item{Key: key, Version: object.Any, Object: obj})
	return "updated", it, err
}

// ack is one line of a child.
type ack struct {
	writer, n int
	done, key string
	rev       int
	id        string
}

// killed starts a child on the file, lets it write for a while, and kills it in the
// middle of it. The answer is what it said.
func killed(t *testing.T, path string, seed uint64, writers, after int) (head reflector.Cursor, acks []ack) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe, "-test.run=^$")
	cmd.Env = append(os.Environ(), childEnv+"="+path, fmt.Sprint(childEnv, "_SEED=", seed), fmt.Sprint(childEnv, "_WRITERS=", writers))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if c, ok := strings.CutPrefix(lines.Text(), "open "); ok {
			head = reflector.Cursor(c)
			continue
		}
		var a ack
		_, err := fmt.Sscan(strings.TrimPrefix(lines.Text(), "acked "), &a.writer, &a.n, &a.done, &a.key, &a.rev, &a.id)
		require.NoError(t, err, lines.Text())
		if acks = append(acks, a); len(acks) == after {
			require.NoError(t, cmd.Process.Kill()) // and read on: it may have said more
		}
	}
	require.Error(t, cmd.Wait(), "it can't have ended by itself")
	require.GreaterOrEqual(t, len(acks), after)
	return head, acks
}

// TestKilledInMidWrite: a process is killed while it writes, again and again.
// Whatever it acknowledged is there, of each writer at most one write more; and a
// watch from a cursor of before tells exactly what happened since, as long as the
// history says it reaches.
func TestKilledInMidWrite(t *testing.T) {
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	path := filepath.Join(t.TempDir(), "pods.db")
	state := map[string]item{} // as a watcher knows it that lives through all of it
	var at reflector.Cursor
	epoch := ""
	for round := range rounds {
		writers := []int{1, 8}[round%2]
		head, acks := killed(t, path, seed+uint64(round), writers, 1+r.IntN(400))
		if at != "" {
			require.Equal(t, at, head, "nothing was written in between")
		}
		s, err := bolt.Open[pod](path, nil, &bolt.Options{History: childHistory})
		require.NoError(t, err)
		now := cursorOf(t, s)
		if epoch == "" {
			epoch, _, _ = strings.Cut(string(now), ".")
		}
		require.True(t, strings.HasPrefix(string(now), epoch+"."), "the epoch stays")
		first, last := revOf(t, head), revOf(t, now)
		byRev := map[int]ack{}
		for _, a := range acks {
			require.Greater(t, a.rev, first)
			require.LessOrEqual(t, a.rev, last, "what was acknowledged is there")
			byRev[a.rev] = a
		}
		require.Len(t, byRev, len(acks))
		require.LessOrEqual(t, last-first-len(acks), writers, "of each writer at most one more")

		if from := first; last-from > childHistory {
			_, err := changesUntil(t, s, head, now)
			require.ErrorIs(t, err, reflector.ErrExpired)
			oldest := reflector.Cursor(fmt.Sprint(epoch, ".", last-childHistory))
			state, err = stateAt(t, s, oldest)
			require.NoError(t, err)
			head = oldest
		}
		changes, err := changesUntil(t, s, head, now)
		require.NoError(t, err)
		require.Len(t, changes, last-revOf(t, head))
		for i, b := range changes {
			rev := revOf(t, head) + 1 + i
			require.Equal(t, rev, revOf(t, b.Cursor))
			require.Len(t, b.Events, 1)
			e := b.Events[0]
			if a, ok := byRev[rev]; ok {
				require.Equal(t, a, ack{a.writer, a.n, a.done, e.Key, rev, e.ID}, "what was acknowledged is what was told")
				require.Equal(t, a.done == "deleted", e.Op == reflector.OpDelete)
				if e.Op == reflector.OpPut {
					require.Equal(t, a.n, e.Object.N)
				}
			}
			was, there := state[e.Key]
			if there {
				require.Equal(t, was.ID, e.ID)
			}
			if e.Op == reflector.OpDelete {
				require.True(t, there)
				delete(state, e.Key)
			} else {
				state[e.Key] = e.Item
			}
		}
		page := list(t, s)
		require.Equal(t, now, page.Cursor)
		require.NoError(t, is(page.Items, state), "the changes lead to what is there")
		for _, it := range page.Items {
			require.Equal(t, it, must(s.Get(t.Context(), it.Key)))
		}
		require.NoError(t, bolt.Check(s))
		at = now
		require.NoError(t, s.Close())
	}
}

func revOf(t *testing.T, c reflector.Cursor) int {
	t.Helper()
	_, digits, _ := strings.Cut(string(c), ".")
	rev, err := strconv.Atoi(digits)
	require.NoError(t, err)
	return rev
}

// changesUntil is what a watch tells after a cursor, up to another.
func changesUntil(t *testing.T, s *bolt.Store[pod], from, to reflector.Cursor) (all []reflector.Batch[pod], err error) {
	t.Helper()
	for b, err := range s.Watch(t.Context(), reflector.WatchOptions{After: from}) {
		if err != nil {
			return all, err
		}
		if len(b.Events) > 0 {
			b.Events = append([]reflector.Event[pod](nil), b.Events...)
			all = append(all, b)
		}
		if b.Cursor == to {
			break
		}
	}
	return all, nil
}

// stateAt is the state at a cursor, read as a later page of a list that was begun
// there. All keys are greater than the one in the token.
func stateAt(t *testing.T, s *bolt.Store[pod], at reflector.Cursor) (map[string]item, error) {
	t.Helper()
	token := reflector.PageToken(strings.Replace(string(at), ".", "/", 1) + "/0")
	p, err := s.List(t.Context(), reflector.ListOptions{Page: token})
	state := map[string]item{}
	for _, it := range p.Items {
		state[it.Key] = it
	}
	return state, err
}

// TestAWatcherLivesThroughKills: a watcher that has its state from before a kill
// goes on where it stood, without a new list.
func TestAWatcherLivesThroughKills(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pods.db")
	_, acks := killed(t, path, 1, 1, 20)
	s := opened(t, path, nil)
	page := list(t, s)
	require.NoError(t, s.Close())
	_, more := killed(t, path, 2, 1, 20)
	s = opened(t, path, nil)
	changes, err := changesUntil(t, s, page.Cursor, cursorOf(t, s))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(changes), len(more))
	require.Equal(t, page.Cursor, changes[0].Prev, "and can prove it")
	state := map[string]item{}
	for _, it := range page.Items {
		state[it.Key] = it
	}
	for _, b := range changes {
		for _, e := range b.Events {
			if state[e.Key] = e.Item; e.Op == reflector.OpDelete {
				delete(state, e.Key)
			}
		}
	}
	require.NoError(t, is(list(t, s).Items, state))
	require.NotEmpty(t, acks)
	require.False(t, reflect.DeepEqual(page.Items, list(t, s).Items))
}
