package reconcile

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// planner finds what has to be run.
type planner struct {
	nodes  []*node
	known  map[Runner]*node
	path   []*node // from a named runner to the one that is looked at
	faults []error
}

// plan makes a node of each runner that is named or needed, each once by its
// identity.
func plan(all []Runner) ([]*node, error) {
	p := &planner{known: map[Runner]*node{}}
	for i, r := range all {
		if r = unwrap(r); r == nil {
			p.fault("runner %d is nil", i)
			continue
		}
		p.visit(r).named = true
	}
	p.checkNames()
	if err := errors.Join(p.faults...); err != nil {
		return nil, err
	}
	p.order()
	return p.nodes, nil
}

func (p *planner) fault(format string, args ...any) {
	p.faults = append(p.faults, fmt.Errorf("%w: %w", ErrInvalidOptions, fmt.Errorf(format, args...)))
}

func (p *planner) visit(r Runner) *node {
	comparable := reflect.ValueOf(r).Comparable()
	if comparable {
		if n := p.known[r]; n != nil {
			if slices.Contains(p.path, n) {
				p.fault("%s needs itself", n.name)
			}
			return n
		}
	}
	if c, ok := r.(interface{ wiringError() error }); ok {
		if err := c.wiringError(); err != nil {
			p.faults = append(p.faults, err)
		}
	}
	n := &node{runner: r, name: nameOf(r), ended: make(chan struct{}), over: make(chan struct{})}
	if comparable {
		p.known[r] = n
	}
	p.nodes = append(p.nodes, n)
	needer, ok := r.(Needer)
	if !ok {
		return n
	}
	p.path = append(p.path, n)
	for _, need := range needer.Needs() {
		if need = unwrap(need); need == nil {
			p.fault("%s needs nil", n.name)
			continue
		}
		if m := p.visit(need); !slices.Contains(n.needs, m) {
			n.needs = append(n.needs, m)
		}
	}
	p.path = p.path[:len(p.path)-1]
	return n
}

// checkNames refuses two controllers of one name: nobody could tell them apart in
// what is reported of them.
func (p *planner) checkNames() {
	seen := map[string]bool{}
	for _, n := range p.nodes {
		if _, ok := n.runner.(interface{ Explain(string) Explanation }); !ok {
			continue
		}
		if seen[n.name] {
			p.fault("two controllers are called %q", n.name)
		}
		seen[n.name] = true
	}
}

// order says who ends before whom: each runner after those that need it, and
// caches after all work, for who reads a cache need not have said so.
func (p *planner) order() {
	needed := map[*node]bool{}
	for _, n := range p.nodes {
		for _, need := range n.needs {
			need.before = append(need.before, n)
			needed[need] = true
		}
	}
	var work []*node
	for _, n := range p.nodes {
		if _, cache := n.runner.(syncer); !cache && !needed[n] {
			work = append(work, n)
		}
	}
	for _, n := range p.nodes {
		if slices.Contains(work, n) {
			continue
		}
		for _, w := range work {
			if !slices.Contains(n.before, w) {
				n.before = append(n.before, w)
			}
		}
	}
}

// nameOf is what a runner is called in errors.
func nameOf(r Runner) string {
	if named, ok := r.(interface{ Name() string }); ok && named.Name() != "" {
		return named.Name()
	}
	return fmt.Sprintf("%T", r)
}
