package resolver_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// measure runs a call as a benchmark of its own and returns the median of its durations. It reports the median as a
// share of that of the list, unless that is 0.
func measure(b *testing.B, name string, list time.Duration, call func() error) (median time.Duration) {
	b.Run(name, func(b *testing.B) {
		var took []time.Duration
		for b.Loop() {
			start := time.Now()
			if err := call(); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(start))
		}
		slices.Sort(took)
		median = took[len(took)/2]
		if list > 0 {
			b.ReportMetric(float64(median)/float64(list), "p50/list")
		}
	})
	return median
}

func heapMiB() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

// BenchmarkSearch compares first pages of searches with the first page of the list, among 100,000 projects with 300,000
// domains, and a change with and without an index. It also measures what an index costs.
func BenchmarkSearch(b *testing.B) {
	r := big(b, resolver.Options{})
	first := resolver.Query{Page: 1, Limit: 10}
	projects := func(s resolver.Search) func() error {
		return func() error { _, _, err := r.FindProjects(s, first); return err }
	}
	random := rand.New(rand.NewPCG(1, 2))
	change := func() error {
		f := benchFile(random.IntN(benchProjects))
		f.Declared.Projects[0].Project.Name = fmt.Sprint("Name ", random.Int())
		apply(b, r, f)
		return nil
	}
	measure(b, "change/without-index", 0, change)
	b.Run("build", func(b *testing.B) {
		before := heapMiB()
		for b.Loop() {
			r.DropIndexes()
			if err := projects(resolver.Search{})(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(heapMiB()-before, "MiB")
	})
	list := measure(b, "list", 0, func() error { _, _, err := r.Projects(first); return err })
	for _, text := range []string{"p", "e", "zq", "9", "project-4711", "ject-4711", "www.project-5", "ct-1www.pr", ".example"} {
		measure(b, "projects/"+text, list, projects(resolver.Search{Text: text}))
		measure(b, "domains/"+text, list, func() error {
			_, _, err := r.FindDomains(resolver.Search{Text: text}, first)
			return err
		})
	}
	measure(b, "projects/status", list, projects(resolver.Search{Status: catalog.StatusActive}))
	measure(b, "projects/status-and-text", list, projects(resolver.Search{Text: "99", Status: catalog.StatusActive}))
	measure(b, "domains/all", list, func() error { _, _, err := r.FindDomains(resolver.Search{}, first); return err })
	measure(b, "change/with-index", 0, change)
	search := projects(resolver.Search{Text: "ject-4711"})
	if err := search(); err != nil { // it reads the changes so far
		b.Fatal(err)
	}
	measure(b, "change-and-search", 0, func() error { return cmp.Or(change(), search()) })
	measure(b, "after-changes", list, search)
}
