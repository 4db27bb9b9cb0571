package workload

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/homeostat/homeostat/object"
)

// Pod is one process: what is wanted of it, and what has become of it.
type Pod struct {
	object.Meta `json:"meta,omitzero"`
	Created     time.Time `json:"created,omitzero"`
	Spec        PodSpec   `json:"spec"`
	Status      PodStatus `json:"status,omitzero"`
}

// PodSpec is what a Pod runs. It does not change during a Pod's life.
type PodSpec struct {
	Command []string          `json:"command"` // a path, or a name in PATH, and its first arguments
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"` // beside the environment of the node agent

	// RestartPolicy says when a process that ended is started again. "" is Always.
	RestartPolicy RestartPolicy `json:"restartPolicy,omitempty"`
	// GracePeriod is how long the process may take to end once it was asked to
	// (SIGTERM), before it is made to (SIGKILL): "5s", "1m30s". "" is 5s.
	GracePeriod string `json:"gracePeriod,omitempty"`
}

// RestartPolicy says when a process that ended is started again.
type RestartPolicy string

// The policies.
const (
	Always    RestartPolicy = "Always"
	OnFailure RestartPolicy = "OnFailure"
	Never     RestartPolicy = "Never"
)

const defaultGrace = 5 * time.Second

// Grace is GracePeriod as a duration.
func (s PodSpec) Grace() time.Duration {
	if d, err := time.ParseDuration(s.GracePeriod); err == nil && d >= 0 {
		return d
	}
	return defaultGrace
}

// Restarts says whether a process that ended with this code is started again.
func (s PodSpec) Restarts(code int) bool {
	switch s.RestartPolicy {
	case OnFailure:
		return code != 0
	case Never:
		return false
	}
	return true
}

// Validate names everything that is wrong.
func (s PodSpec) Validate() error {
	var errs []error
	if len(s.Command) == 0 || s.Command[0] == "" {
		errs = append(errs, errors.New("command: missing"))
	}
	if !slices.Contains([]RestartPolicy{"", Always, OnFailure, Never}, s.RestartPolicy) {
		errs = append(errs, fmt.Errorf("restartPolicy: %q is none of Always, OnFailure, Never", s.RestartPolicy))
	}
	if d, err := time.ParseDuration(s.GracePeriod); s.GracePeriod != "" && (err != nil || d < 0) {
		errs = append(errs, fmt.Errorf("gracePeriod: %q is no duration such as 5s", s.GracePeriod))
	}
	for _, arg := range slices.Concat(s.Command, s.Args) {
		if strings.Contains(arg, "\x00") {
			errs = append(errs, fmt.Errorf("command, args: %q holds a zero byte", arg))
		}
	}
	for name, value := range s.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			errs = append(errs, fmt.Errorf("env: %q=%q cannot be a variable", name, value))
		}
	}
	return errors.Join(errs...)
}

// PodStatus is what has become of a Pod; the node agent writes it.
type PodStatus struct {
	Phase    Phase  `json:"phase,omitempty"`
	PID      int    `json:"pid,omitempty"` // of the process that runs
	Restarts int    `json:"restarts,omitempty"`
	ExitCode *int   `json:"exitCode,omitempty"` // of the process that ended last
	Message  string `json:"message,omitempty"`  // why, for people
}

// Phase is where a Pod is in its life. "" is a Pod that no node agent has seen.
type Phase string

// The phases. Succeeded and Failed are final.
const (
	Running   Phase = "Running"
	BackOff   Phase = "BackOff" // ended, and started again later
	Succeeded Phase = "Succeeded"
	Failed    Phase = "Failed"
)

// Finished says that the Pod's process ended and is not started again.
func (p *Pod) Finished() bool {
	return p.Status.Phase == Succeeded || p.Status.Phase == Failed
}
