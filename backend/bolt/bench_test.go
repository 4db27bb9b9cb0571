package bolt_test

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/homeostat/homeostat/object"
	"github.com/homeostat/homeostat/reflector"
)

// BenchmarkWrite is the cost of one write, alone and with others at the same time:
// these share commits.
func BenchmarkWrite(b *testing.B) {
	for _, writers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			s := fresh(b, nil)
			for i := range 1000 {
				must(s.Create(b.Context(), strconv.Itoa(i), pod{N: i}))
			}
			var n atomic.Int64
			b.SetParallelism(writers) // times GOMAXPROCS, which is set to 1 by -cpu 1
			b.ResetTimer()
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					i := int(n.Add(1))
					must(s.Update(b.Context(), item{Key: strconv.Itoa(i % 1000), Version: object.Any, Object: pod{N: i}}))
				}
			})
		})
	}
}

func BenchmarkGet(b *testing.B) {
	s := fresh(b, nil)
	must(s.Create(b.Context(), "a", pod{N: 1}))
	for b.Loop() {
		must(s.Get(b.Context(), "a"))
	}
}

func BenchmarkList1000(b *testing.B) {
	s := fresh(b, nil)
	for i := range 1000 {
		must(s.Create(b.Context(), strconv.Itoa(i), pod{N: i}))
	}
	for b.Loop() {
		must(s.List(b.Context(), reflector.ListOptions{}))
	}
}
