package workload_test

import (
	"testing"
	"time"

	"github.com/homeostat/homeostat/examples/internal/workload"
	"github.com/stretchr/testify/require"
)

func valid() *workload.ReplicaSet {
	n := 1
	return &workload.ReplicaSet{Kind: "ReplicaSet", Name: "web", Replicas: &n,
		Selector: map[string]string{"app": "web"},
		Template: workload.Template{
			Labels:  map[string]string{"app": "web", "tier": "front"},
			PodSpec: workload.PodSpec{Command: []string{"sleep"}},
		}}
}

func TestValidate(t *testing.T) {
	require.NoError(t, valid().Validate())
	for _, c := range []struct {
		says  string
		spoil func(s *workload.ReplicaSet)
	}{
		{`kind: "Pod"`, func(s *workload.ReplicaSet) { s.Kind = "Pod" }},
		{`name: "Web"`, func(s *workload.ReplicaSet) { s.Name = "Web" }},
		{`name: "../x"`, func(s *workload.ReplicaSet) { s.Name = "../x" }},
		{"replicas: missing", func(s *workload.ReplicaSet) { s.Replicas = nil }},
		{"replicas: -1 is not between", func(s *workload.ReplicaSet) { *s.Replicas = -1 }},
		{"replicas: 1001 is not between", func(s *workload.ReplicaSet) { *s.Replicas = 1001 }},
		{"zero byte", func(s *workload.ReplicaSet) { s.Template.Args = []string{"a\x00b"} }},
		{`env: "A"`, func(s *workload.ReplicaSet) { s.Template.Env = map[string]string{"A": "\x00"} }},
		{"selector: missing", func(s *workload.ReplicaSet) { s.Selector = nil }},
		{"selector: does not select", func(s *workload.ReplicaSet) { s.Selector["tier"] = "back" }},
		{"template: command: missing", func(s *workload.ReplicaSet) { s.Template.Command = nil }},
		{"template: gracePeriod", func(s *workload.ReplicaSet) { s.Template.GracePeriod = "soon" }},
		{"template: gracePeriod", func(s *workload.ReplicaSet) { s.Template.GracePeriod = "-1s" }},
		{`template: env: "A=B"`, func(s *workload.ReplicaSet) { s.Template.Env = map[string]string{"A=B": ""} }},
		{"restartPolicy", func(s *workload.ReplicaSet) { s.Template.RestartPolicy = "Sometimes" }},
		{"only Always", func(s *workload.ReplicaSet) { s.Template.RestartPolicy = workload.Never }},
	} {
		s := valid()
		c.spoil(s)
		require.ErrorContains(t, s.Validate(), c.says)
	}
	s := valid()
	s.Name, s.Replicas = "", nil
	require.ErrorContains(t, s.Validate(), "name")
	require.ErrorContains(t, s.Validate(), "replicas", "all of it at once")
}

func TestGrace(t *testing.T) {
	require.Equal(t, 5*time.Second, workload.PodSpec{}.Grace())
	require.Equal(t, time.Duration(0), workload.PodSpec{GracePeriod: "0s"}.Grace())
	require.Equal(t, 90*time.Second, workload.PodSpec{GracePeriod: "1m30s"}.Grace())
}
