//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/examples/internal/workload"
	"github.com/homeostat/homeostat/fake"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reconcile"
	"github.com/homeostat/homeostat/reflector"
	"github.com/stretchr/testify/require"
)

// sets is the controller alone, over two embedded stores on a day of one's choice.
type sets struct {
	t    *testing.T
	sets *fake.Backend[*workload.ReplicaSet]
	pods *fake.Backend[*workload.Pod]
}

func inBubble(t *testing.T, weather fake.Plan, f func(s *sets)) {
	synctest.Test(t, func(t *testing.T) {
		s := &sets{t, fake.New[*workload.ReplicaSet](fake.Plan{}), fake.New[*workload.Pod](weather)}
		scale := newScaler(
			informer.New(s.sets, nil),
			reconcile.NewClient[*workload.Pod](backend.WithFinalizers[*workload.Pod](s.pods), nil, byOwner, byLabel),
			func(string) error { return nil })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- reconcile.Run(ctx, scale.controller(nil)) }()
		defer func() {
			cancel()
			require.NoError(t, <-done)
		}()
		f(s)
	})
}

func aSet(name string, replicas int) *workload.ReplicaSet {
	labels := map[string]string{"app": name}
	return &workload.ReplicaSet{Kind: ownerKind, Name: name, Replicas: &replicas, Selector: labels,
		Template: workload.Template{Labels: labels, PodSpec: workload.PodSpec{Command: []string{"x"}}}}
}

func (s *sets) declare(set *workload.ReplicaSet) {
	s.t.Helper()
	_, err := backend.Ensure(s.t.Context(), s.sets, set.Name, func(*workload.ReplicaSet) (*workload.ReplicaSet, error) { return set, nil })
	require.NoError(s.t, err)
}

// settle lets the controller come to rest, faults and all, and lists the Pods.
func (s *sets) settle() map[string]*workload.Pod {
	s.t.Helper()
	s.pods.SetPlan(fake.Plan{})
	time.Sleep(10 * time.Minute) // of the bubble's time
	synctest.Wait()
	return s.list()
}

func (s *sets) list() map[string]*workload.Pod {
	s.t.Helper()
	page, err := s.pods.List(s.t.Context(), listAll)
	require.NoError(s.t, err)
	pods := map[string]*workload.Pod{}
	for _, item := range page.Items {
		pods[item.Key] = item.Object
	}
	return pods
}

func (s *sets) create(key string, pod *workload.Pod) {
	s.t.Helper()
	_, err := s.pods.Create(s.t.Context(), key, pod)
	require.NoError(s.t, err)
}

func aPod(app string, owners ...string) *workload.Pod {
	pod := &workload.Pod{Spec: workload.PodSpec{Command: []string{"y"}}}
	pod.Labels = map[string]string{"app": app}
	for _, key := range owners {
		pod.Owners = append(pod.Owners, object.Owner{Kind: ownerKind, Key: key})
	}
	return pod
}

func keysOf(pods map[string]*workload.Pod) (keys []string) {
	for key := range pods {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func TestScalesUpAndDownAndAway(t *testing.T) {
	inBubble(t, fake.Plan{}, func(s *sets) {
		s.declare(aSet("a", 3))
		s.declare(aSet("b", 1))
		first := s.settle()
		require.Len(t, first, 4)
		for key, pod := range first {
			require.Equal(t, key[:1], pod.Owners[0].Key)
			require.Equal(t, []string{"x"}, pod.Spec.Command)
			require.False(t, pod.Created.IsZero())
		}
		s.declare(aSet("a", 5))
		require.Len(t, s.settle(), 6)
		s.declare(aSet("a", 0))
		require.Len(t, s.settle(), 1)
		_, err := s.sets.Delete(t.Context(), "b", object.Any)
		require.NoError(t, err)
		require.Empty(t, s.settle())
	})
}

func TestManyAreMadeInTurns(t *testing.T) {
	inBubble(t, fake.Plan{}, func(s *sets) {
		s.declare(aSet("a", 173))
		require.Len(t, s.settle(), 173)
	})
}

func TestReplacesWhatGoes(t *testing.T) {
	inBubble(t, fake.Plan{}, func(s *sets) {
		s.declare(aSet("a", 2))
		keys := keysOf(s.settle())
		_, err := s.pods.Delete(t.Context(), keys[0], object.Any)
		require.NoError(t, err)
		now := keysOf(s.settle())
		require.Len(t, now, 2)
		require.NotContains(t, now, keys[0])
		require.Contains(t, now, keys[1])
	})
}

func TestAdoptsWhatItSelectsAndNobodyOwns(t *testing.T) {
	inBubble(t, fake.Plan{}, func(s *sets) {
		s.create("orphan", aPod("a"))
		foreign := aPod("a")
		foreign.Owners = []object.Owner{{Kind: "Job", Key: "j"}}
		s.create("foreign", foreign)
		s.create("left behind", aPod("a", "a set that is gone"))
		s.create("other", aPod("z"))
		finished := aPod("a")
		finished.Status.Phase = workload.Succeeded
		s.create("finished", finished)
		s.declare(aSet("a", 2))
		pods := s.settle()
		require.Len(t, pods, 5, "one adopted, one new")
		require.Empty(t, pods["finished"].Owners, "what has ended is no replica")
		require.Equal(t, []object.Owner{{Kind: ownerKind, Key: "a"}}, pods["orphan"].Owners)
		require.Equal(t, foreign.Owners, pods["foreign"].Owners)
		require.NotContains(t, pods, "left behind", "its set is gone, and so does it go")
		require.Empty(t, pods["other"].Owners)

		// An orphan that comes later is adopted as well, and is one too many then.
		s.create("late", aPod("a"))
		pods = s.settle()
		owned := 0
		for _, pod := range pods {
			if len(pod.Owners) == 1 && pod.Owners[0].Key == "a" {
				owned++
			}
		}
		require.Equal(t, 2, owned)
	})
}

func TestWhatTheSetNoLongerSelectsGoes(t *testing.T) {
	inBubble(t, fake.Plan{}, func(s *sets) {
		s.declare(aSet("a", 2))
		before := keysOf(s.settle())
		set := aSet("a", 2)
		set.Selector = map[string]string{"app": "new"}
		set.Template.Labels = set.Selector
		s.declare(set)
		pods := s.settle()
		require.Len(t, pods, 2)
		for key, pod := range pods {
			require.NotContains(t, before, key)
			require.Equal(t, "new", pod.Labels["app"])
		}
	})
}

func TestDispensableFirst(t *testing.T) {
	at := func(phase workload.Phase, minute int) candidate {
		pod := &workload.Pod{Created: time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC)}
		pod.Status.Phase = phase
		return candidate{fmt.Sprint(phase, minute), pod}
	}
	have := []candidate{at(workload.Running, 2), at("", 1), at(workload.Running, 3), at(workload.BackOff, 4), at(workload.Running, 1)}
	slices.SortFunc(have, dispensableFirst)
	var keys []string
	for _, c := range have {
		keys = append(keys, c.key)
	}
	require.Equal(t, []string{"BackOff4", "1", "Running3", "Running2", "Running1"}, keys)
}

func TestScalesExactlyOnABadDay(t *testing.T) {
	for seed := range uint64(30) {
		inBubble(t, fake.Plan{Seed: seed, Faults: []fake.Fault{
			{On: fake.Writes, Do: fake.Fail, OneIn: 6, Err: errBadDay},
			{On: fake.Create, Do: fake.FailAfterCommit, OneIn: 4},
			{On: fake.Watch, Do: fake.Cut, OneIn: 5},
			{On: fake.Watch, Do: fake.Silence, OneIn: 10, For: 10 * time.Second},
		}}, func(s *sets) {
			most := 0
			for _, n := range []int{3, 7, 2, 4} {
				s.declare(aSet("a", n))
				for range 50 {
					time.Sleep(time.Second)
					synctest.Wait()
					owned := len(s.list())
					most = max(most, owned)
				}
			}
			require.LessOrEqual(t, most, 7, "seed %d: never more than declared at any time", seed)
			require.Len(t, s.settle(), 4, "seed %d", seed)
		})
	}
}

var (
	errBadDay = errors.New("a bad day")
	listAll   = reflector.ListOptions{}
)
