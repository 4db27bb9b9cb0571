package workload

import (
	"errors"
	"fmt"
	"regexp"
)

// ReplicaSet declares that so many Pods of one kind run.
type ReplicaSet struct {
	Kind string `json:"kind"` // ReplicaSet
	Name string `json:"name"`
	// Replicas is how many Pods shall run. It must be said, also when it is 0.
	Replicas *int `json:"replicas"`
	// Selector says by their labels which Pods are counted.
	Selector map[string]string `json:"selector"`
	// Template is what new Pods are made of.
	Template Template `json:"template"`
}

// Template is what Pods are made of.
type Template struct {
	Labels map[string]string `json:"labels"` // Selector must select them
	PodSpec
}

// Key is the name: there is one ReplicaSet of a name.
func (s *ReplicaSet) Key() string { return s.Name }

// Want is the number of Pods declared.
func (s *ReplicaSet) Want() int {
	if s == nil || s.Replicas == nil {
		return 0
	}
	return *s.Replicas
}

// Selects says whether a Pod with these labels is one of the set's.
func (s *ReplicaSet) Selects(labels map[string]string) bool {
	for name, value := range s.Selector {
		if got, has := labels[name]; !has || got != value {
			return false
		}
	}
	return true
}

// Each is a process, and each process is waited for by a thread.
const maxReplicas = 1000

// A set's name is the beginning of its Pods' names, which may be file names.
var validName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

// Validate names everything that is wrong.
func (s *ReplicaSet) Validate() error {
	if s.Kind != "ReplicaSet" {
		return fmt.Errorf("kind: %q is not ReplicaSet", s.Kind)
	}
	var errs []error
	if !validName.MatchString(s.Name) || len(s.Name) > 100 {
		errs = append(errs, fmt.Errorf("name: %q is not of lower-case letters, digits, - and . (at most 100)", s.Name))
	}
	if s.Replicas == nil {
		errs = append(errs, errors.New("replicas: missing"))
	} else if *s.Replicas < 0 || *s.Replicas > maxReplicas {
		errs = append(errs, fmt.Errorf("replicas: %d is not between 0 and %d", *s.Replicas, maxReplicas))
	}
	if len(s.Selector) == 0 {
		errs = append(errs, errors.New("selector: missing, and would select every Pod"))
	} else if !s.Selects(s.Template.Labels) {
		errs = append(errs, errors.New("selector: does not select the labels of the template"))
	}
	if err := s.Template.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("template: %w", err))
	}
	if p := s.Template.RestartPolicy; p != "" && p != Always {
		errs = append(errs, fmt.Errorf("template: restartPolicy: the Pods of a ReplicaSet are replaced when they end, so only Always makes sense, not %q", p))
	}
	return errors.Join(errs...)
}
