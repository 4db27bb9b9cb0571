package patch_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/homeostat/homeostat/patch"
)

// deployment is a document of about 2.6 kB with three containers.
func deployment(image string) []byte {
	var b strings.Builder
	b.WriteString(`{"kind":"Deployment","metadata":{"name":"shop","namespace":"prod","labels":{"app":"shop","tier":"front","team":"blue"},"annotations":{"note":"rolled out by hand on a Tuesday, do not ask why","checksum/config":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}},"spec":{"replicas":3,"selector":{"matchLabels":{"app":"shop","tier":"front"}},"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1,"maxUnavailable":0}},"template":{"metadata":{"labels":{"app":"shop","tier":"front"}},"spec":{"containers":[`)
	for i, name := range []string{"web", "proxy", "metrics"} {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"name":%q,"image":"registry.example.com/shop/%s:%s","args":["--listen=:%d","--log=json","--verbose=false"],"env":[{"name":"REGION","value":"eu-1"},{"name":"POOL","value":"green"},{"name":"LIMIT","value":"250"}],"ports":[{"name":"http","containerPort":%d,"protocol":"TCP"}],"resources":{"limits":{"cpu":"500m","memory":"256Mi"},"requests":{"cpu":"100m","memory":"128Mi"}},"readinessProbe":{"httpGet":{"path":"/ready","port":%d},"periodSeconds":5,"failureThreshold":3},"volumeMounts":[{"name":"config","mountPath":"/etc/shop"},{"name":"tmp","mountPath":"/tmp"}]}`, name, name, image, 8080+i, 8080+i, 8080+i)
	}
	b.WriteString(`],"volumes":[{"name":"config","configMap":{"name":"shop"}},{"name":"tmp","emptyDir":{}}],"terminationGracePeriodSeconds":30}}},"status":{"replicas":3,"readyReplicas":3,"observedGeneration":17}}`)
	return []byte(b.String())
}

func mustMerge(t testing.TB, text string) patch.Patch {
	t.Helper()
	p, err := patch.Merge([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mustJSON(t testing.TB, text string) patch.Patch {
	t.Helper()
	p, err := patch.JSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func BenchmarkApply(b *testing.B) {
	doc := deployment("1.0")
	b.Logf("document: %d bytes", len(doc))
	run := func(name string, p patch.Patch) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Apply(doc); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("merge", mustMerge(b, `{"spec":{"replicas":4}}`))
	run("json", mustJSON(b, `[{"op":"replace","path":"/spec/template/spec/containers/1/image","value":"registry.example.com/shop/proxy:1.1"}]`))
	// For scale: what going through maps costs, before any merging.
	b.Run("encoding-json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var v any
			if err := json.Unmarshal(doc, &v); err != nil {
				b.Fatal(err)
			}
			if _, err := json.Marshal(v); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkBetween(b *testing.B) {
	from, to := deployment("1.0"), deployment("1.1")
	b.Run("merge", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := patch.MergeBetween(from, to); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := patch.JSONBetween(from, to); err != nil {
				b.Fatal(err)
			}
		}
	})
}
