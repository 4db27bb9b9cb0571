package benchmarks_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"github.com/homeostat/homeostat/indexer"
	"github.com/homeostat/homeostat/object"
)

// objects is how many a cache holds; the smoke test makes it small.
var objects = 100_000

// Pod is what people keep in such caches.
type Pod struct {
	object.Meta `json:"meta,omitzero"`
	Node        string            `json:"node"`
	Phase       string            `json:"phase"`
	IP          string            `json:"ip"`
	Notes       map[string]string `json:"notes,omitempty"`
	Containers  []Container       `json:"containers"`
}

// Container is one process of a Pod.
type Container struct {
	Name     string   `json:"name"`
	Image    string   `json:"image"`
	Args     []string `json:"args,omitempty"`
	Env      []Env    `json:"env,omitempty"`
	Ready    bool     `json:"ready"`
	Restarts int      `json:"restarts"`
}

// Env is one variable of a Container.
type Env struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

var (
	byNode  = indexer.By("node", func(p *Pod) string { return p.Node })
	byOwner = indexer.ByEach("owner", func(p *Pod) []string {
		keys := make([]string, 0, 2)
		for _, o := range p.Owners {
			keys = append(keys, o.Key)
		}
		return keys
	})
)

// perOwner is how many pods an owner has.
const perOwner = 100

func namespace(i int) string { return fmt.Sprint("ns-", i/perOwner%50) }

func ownerKey(i int) string { return object.Key(namespace(i), fmt.Sprint("set-", i/perOwner)) }

func newPod(i int) *Pod {
	p := &Pod{
		Node:  fmt.Sprint("node-", i%1000),
		Phase: "Running",
		IP:    fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255),
		Notes: map[string]string{"config-hash": fmt.Sprintf("%032x", i), "team": "blue"},
	}
	p.Labels = map[string]string{"app": fmt.Sprint("app-", i/perOwner), "tier": "front", "track": "stable"}
	p.Owners = []object.Owner{{Kind: "ReplicaSet", Key: ownerKey(i), ID: fmt.Sprint("uid-", i/perOwner)}}
	for c := range 3 {
		p.Containers = append(p.Containers, Container{
			Name:  fmt.Sprint("c", c),
			Image: fmt.Sprintf("registry.example.com/shop/c%d:1.%d", c, i%7),
			Args:  []string{"--listen=:8080", "--log=json", "--verbose=false"},
			Env: []Env{
				{"REGION", "eu-1"}, {"POOL", "green"}, {"LIMIT", strconv.Itoa(i)}, {"POD", fmt.Sprint("pod-", i)},
				{"DATABASE", "postgres://db.shop.example.com:5432/shop"}, {"FLAGS", "fast-start,no-cache"},
			},
			Ready: true,
		})
	}
	return p
}

var podCache struct {
	sync.Mutex
	items []object.Item[*Pod]
}

// podItems are n pods, shared by all rows.
func podItems(n int) []object.Item[*Pod] {
	podCache.Lock()
	defer podCache.Unlock()
	for i := len(podCache.items); i < n; i++ {
		podCache.items = append(podCache.items, object.Item[*Pod]{
			Key:     object.Key(namespace(i), fmt.Sprint("pod-", i)),
			ID:      fmt.Sprintf("0b7b7e6c-0000-4000-8000-%012x", i),
			Version: "0",
			Object:  newPod(i),
		})
	}
	return podCache.items[:n:n]
}

// versions makes each round over the objects one of changes.
var versions = func() (v [64]object.Version) {
	for i := range v {
		v[i] = object.Version(strconv.Itoa(i + 1))
	}
	return v
}()

// changes tells of one changed pod after the other, in random order, each as
// often as the others.
type changes struct {
	items []object.Item[*Pod]
	order []int
	n     int
	last  object.Item[*Pod]
}

func newChanges(n int) *changes {
	return &changes{items: podItems(n), order: rand.New(rand.NewPCG(1, 2)).Perm(n)}
}

func (c *changes) next() object.Item[*Pod] {
	item := c.items[c.order[c.n%len(c.order)]]
	item.Version = versions[c.n/len(c.order)%len(versions)]
	c.n++
	c.last = item
	return item
}

// row runs one row under its size, and notes that it came to its end.
func row(b *testing.B, size string, n int, f func(b *testing.B)) {
	b.Run(fmt.Sprint(size, "=", n), func(b *testing.B) {
		started.Add(1)
		b.ReportAllocs()
		f(b)
		finished.Add(1)
	})
}

// perItem reports the time of one of the n things that an iteration does.
func perItem(b *testing.B, n int, what string) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/"+what)
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
