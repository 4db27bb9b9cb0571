package benchmarks_test

import (
	"encoding/json"
	"testing"

	"github.com/homeostat/homeostat/patch"
)

// podJSON is one pod, and the same with one image changed.
func podJSON(b *testing.B) (before, after []byte) {
	b.Helper()
	pod := *podItems(1)[0].Object
	before, err := json.Marshal(pod)
	must(b, err)
	changed := append([]Container(nil), pod.Containers...)
	changed[1].Image = "registry.example.com/shop/c1:2.0"
	pod.Containers, pod.Phase = changed, "Pending"
	after, err = json.Marshal(pod)
	must(b, err)
	return before, after
}

func applyRow(b *testing.B, doc []byte, p patch.Patch) {
	row(b, "bytes", len(doc), func(b *testing.B) {
		for b.Loop() {
			_, err := p.Apply(doc)
			must(b, err)
		}
	})
}

// BenchmarkPatchMergeApply sets two fields by a merge patch.
func BenchmarkPatchMergeApply(b *testing.B) {
	doc, _ := podJSON(b)
	p, err := patch.Merge([]byte(`{"phase":"Failed","notes":{"team":"red"}}`))
	must(b, err)
	applyRow(b, doc, p)
}

// BenchmarkPatchJSONApply sets one field, deep inside, by a JSON patch.
func BenchmarkPatchJSONApply(b *testing.B) {
	doc, _ := podJSON(b)
	p, err := patch.JSON([]byte(`[{"op":"replace","path":"/containers/1/image","value":"other"}]`))
	must(b, err)
	applyRow(b, doc, p)
}

// BenchmarkPatchMergeCreate finds out what changed between two values and makes
// the patch.
func BenchmarkPatchMergeCreate(b *testing.B) {
	before, after := podJSON(b)
	var from, to Pod
	must(b, json.Unmarshal(before, &from))
	must(b, json.Unmarshal(after, &to))
	row(b, "bytes", len(before), func(b *testing.B) {
		for b.Loop() {
			_, err := patch.Between(from, to)
			must(b, err)
		}
	})
}
