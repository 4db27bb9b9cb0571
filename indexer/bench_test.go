package indexer_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/homeostat/homeostat/indexer"
	"github.com/homeostat/homeostat/object"
)

type benchPod struct {
	node, owner string
	_           [1024]byte // as large as such things are
}

func benchItem(i, version int) object.Item[*benchPod] {
	return object.Item[*benchPod]{
		Key:     fmt.Sprintf("ns-%d/pod-%d", i%50, i),
		Version: object.Version(fmt.Sprint(version)),
		Object:  &benchPod{node: fmt.Sprintf("node-%d", i%1000), owner: fmt.Sprintf("owner-%d", i%100)},
	}
}

var (
	benchNode  = indexer.By("node", func(p *benchPod) string { return p.node })
	benchOwner = indexer.By("owner", func(p *benchPod) string { return p.owner })
)

func benchCache(b *testing.B, n int) (*indexer.Indexer[*benchPod], []object.Item[*benchPod]) {
	c := indexer.New[*benchPod](benchNode, benchOwner)
	items := make([]object.Item[*benchPod], n)
	for i := range items {
		items[i] = benchItem(i, 1)
	}
	if err := c.Write(func(w *indexer.Batch[*benchPod]) error {
		for _, item := range items {
			w.Put(item)
		}
		return nil
	}); err != nil {
		b.Fatal(err)
	}
	return c, items
}

func BenchmarkGet(b *testing.B) {
	for _, n := range []int{500, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c, items := benchCache(b, n)
			order := rand.New(rand.NewPCG(1, 1)).Perm(n)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, ok := c.Get(items[order[i%n]].Key); !ok {
					b.Fatal("lost")
				}
			}
		})
	}
}

func BenchmarkPut(b *testing.B) {
	for _, size := range []int{1, 64, 1000} {
		for _, what := range []string{"same", "moved"} {
			b.Run(fmt.Sprintf("%s/batch=%d", what, size), func(b *testing.B) {
				const n = 100_000
				c, items := benchCache(b, n)
				order := rand.New(rand.NewPCG(1, 1)).Perm(n)
				if what == "moved" {
					for i := range items {
						items[i].Object.node = "node-x" + items[i].Object.node
					}
				}
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					if i%size == 0 {
						if err := c.Write(func(w *indexer.Batch[*benchPod]) error {
							for j := range size {
								w.Put(items[order[(i+j)%n]])
							}
							return nil
						}); err != nil {
							b.Fatal(err)
						}
					}
					i++
				}
			})
		}
	}
}

func BenchmarkInsertDelete(b *testing.B) {
	c, items := benchCache(b, 100_000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		item := items[i*7919%len(items)]
		if !c.Delete(item.Key) {
			b.Fatal("lost")
		}
		if err := c.Put(item); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkIterate(b *testing.B) {
	c, _ := benchCache(b, 100_000)
	for name, walk := range map[string]func() int{
		"All":    func() (n int) { c.All()(func(string, *benchPod) bool { n++; return true }); return },
		"Sorted": func() (n int) { c.Sorted()(func(string, *benchPod) bool { n++; return true }); return },
		"Lookup(100)": func() (n int) {
			benchNode.Lookup(c, "node-7")(func(string, *benchPod) bool { n++; return true })
			return
		},
		"Lookup(1000)": func() (n int) {
			benchOwner.Lookup(c, "owner-7")(func(string, *benchPod) bool { n++; return true })
			return
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				walk()
			}
		})
	}
}
