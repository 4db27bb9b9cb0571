//go:build unix

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/homeostat/homeostat/backend"
	"github.com/homeostat/homeostat/examples/internal/workload"
	"github.com/homeostat/homeostat/indexer"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reconcile"
	"github.com/homeostat/homeostat/retry"
)

const ownerKind = "ReplicaSet"

// byOwner answers both "whose is this Pod" and "which Pods has this set".
var byOwner = indexer.ByEach("owner", func(p *workload.Pod) (keys []string) {
	for _, o := range p.Owners {
		if o.Kind == ownerKind {
			keys = append(keys, o.Key)
		}
	}
	return keys
})

type label struct{ name, value string }

// byLabel finds Pods to adopt.
var byLabel = indexer.ByEach("label", func(p *workload.Pod) (labels []label) {
	for name, value := range p.Labels {
		labels = append(labels, label{name, value})
	}
	return labels
})

// scaler is the ReplicaSet controller.
type scaler struct {
	sets    *informer.Informer[*workload.ReplicaSet]
	pods    reconcile.Client[*workload.Pod]
	reached func(part string) error
}

func newScaler(sets *informer.Informer[*workload.ReplicaSet], pods reconcile.Client[*workload.Pod], reached func(string) error) *scaler {
	return &scaler{sets, pods, reached}
}

func (s *scaler) controller(logger *slog.Logger) *reconcile.Controller[*workload.ReplicaSet] {
	c := reconcile.New("replicasets", s.sets, s.reconcile, &reconcile.Options{Logger: logger})
	reconcile.Watch(c, s.pods.Informer, s.concerned)
	return c
}

// concerned is whom a Pod concerns: its owners, and as long as it has none, each
// set that could adopt it.
func (s *scaler) concerned(p *workload.Pod) []string {
	if len(p.Owners) > 0 {
		return byOwner.Keys(p)
	}
	var keys []string
	for key, set := range s.sets.Cache().All() {
		if set.Selects(p.Labels) {
			keys = append(keys, key)
		}
	}
	return keys
}

// reconcile creates and deletes by what the cache shows. Its own writes are always
// in there: a key does not run again before the cache has what its last run wrote.
func (s *scaler) reconcile(ctx context.Context, req reconcile.Request[*workload.ReplicaSet]) error {
	if err := s.reached("controller"); err != nil {
		return err
	}
	set, exists := req.Object()
	view := s.pods.Cache().Snapshot()
	if !exists {
		var keys []string
		for key := range byOwner.Lookup(view, req.Key) {
			keys = append(keys, key)
		}
		return s.remove(ctx, keys)
	}
	have, err := s.adopt(ctx, req.Key, set, view)
	if err != nil {
		return err
	}
	var stray []string
	for key, pod := range byOwner.Lookup(view, req.Key) {
		switch {
		case pod.IsDeleting() || pod.Finished():
		case !set.Selects(pod.Labels):
			stray = append(stray, key) // the selector was changed: it is not among those declared
		default:
			have = append(have, candidate{key, pod})
		}
	}
	if err := s.remove(ctx, stray); err != nil {
		return err
	}
	if surplus := len(have) - set.Want(); surplus > 0 {
		slices.SortFunc(have, dispensableFirst)
		var keys []string
		for _, c := range have[:surplus] {
			keys = append(keys, c.key)
		}
		return s.remove(ctx, keys)
	}
	missing := set.Want() - len(have)
	for range min(missing, atOnce) {
		if err := s.create(ctx, req.Key, set); err != nil {
			return err
		}
	}
	if missing > atOnce {
		return retry.Later(time.Millisecond, "more Pods to create") // if that is still wanted then
	}
	return nil
}

// atOnce is how many Pods one run creates.
const atOnce = 50

func (s *scaler) create(ctx context.Context, owner string, set *workload.ReplicaSet) error {
	pod := &workload.Pod{Created: time.Now().UTC(), Spec: set.Template.PodSpec}
	pod.Labels = maps.Clone(set.Template.Labels)
	pod.Owners = []object.Owner{{Kind: ownerKind, Key: owner}}
	name := owner + "-" + strings.ToLower(rand.Text()[:6])
	_, err := s.pods.Create(ctx, name, pod)
	return err
}

func (s *scaler) remove(ctx context.Context, keys []string) error {
	var errs []error
	for _, key := range keys {
		if pod, exists := s.pods.Cache().Get(key); !exists || pod.IsDeleting() {
			continue
		}
		if _, err := s.pods.Delete(ctx, key, object.Any); err != nil && !errors.Is(err, backend.ErrNotFound) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// adopt takes the Pods that the set selects and that belong to nobody, and answers
// those that it got.
func (s *scaler) adopt(ctx context.Context, owner string, set *workload.ReplicaSet, view indexer.View[*workload.Pod]) (got []candidate, err error) {
	free := func(p *workload.Pod) bool {
		return len(p.Owners) == 0 && !p.IsDeleting() && !p.Finished() && set.Selects(p.Labels)
	}
	for name, value := range set.Selector {
		for key, pod := range byLabel.Lookup(view, label{name, value}) {
			if !free(pod) {
				continue
			}
			adopted := false
			item, err := backend.Modify(ctx, s.pods, key, func(p *workload.Pod) (*workload.Pod, error) {
				if adopted = free(p); adopted { // still
					p.Owners = []object.Owner{{Kind: ownerKind, Key: owner}}
				}
				return p, nil
			})
			switch {
			case errors.Is(err, backend.ErrNotFound):
			case err != nil:
				return nil, err
			case adopted:
				got = append(got, candidate{key, item.Object})
			}
		}
		break // any one label narrows it down; Selects looks at all
	}
	return got, nil
}

type candidate struct {
	key string
	pod *workload.Pod
}

// dispensableFirst: what does not run goes before what runs, and what is young
// before what is old.
func dispensableFirst(a, b candidate) int {
	if ar, br := a.pod.Status.Phase == workload.Running, b.pod.Status.Phase == workload.Running; ar != br {
		if br {
			return -1
		}
		return 1
	}
	if c := b.pod.Created.Compare(a.pod.Created); c != 0 {
		return c
	}
	return strings.Compare(a.key, b.key)
}
