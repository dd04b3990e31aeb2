package resolver_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

func TestHitsDoNotAllocate(t *testing.T) {
	if testrig.Race {
		t.Skip("the race detector allocates")
	}
	r := open(t, resolver.Options{})
	off, suspended := block("off", "off.example"), block("suspended", "suspended.example")
	off.Domains[0].Active = false
	suspended.Project.Status = catalog.StatusSuspended
	apply(t, r, file("a.hcl", block("a", "a.example", "*.wild.example", "xn--bcher-kva.example"), off, suspended))
	for _, raw := range []string{
		"a.example", "Shop.A.Example", "A.EXAMPLE.:8443", "x.y.wild.example", "xn--bcher-kva.example", "XN--BCHER-kva.example.",
		"off.example", "suspended.example", "unknown.test", "xn--bcher-kva.test", strings.Repeat("a23456789.", 25) + "abc",
	} {
		for _, form := range []resolver.Form{resolver.Nested, resolver.Flat, resolver.NestedLabels, resolver.FlatLabels} {
			name := []byte(raw)
			resolve(t, r, raw, form)
			r.Settle()
			before := r.Metrics()
			if n := testing.AllocsPerRun(500, func() {
				if _, err := r.Resolve(name, form); err != nil {
					t.Fatal(err)
				}
			}); n != 0 {
				t.Errorf("%q form %d: %v allocations a hit", raw, form, n)
			}
			if m := r.Metrics(); m.Misses != before.Misses {
				t.Errorf("%q form %d: %d misses: it was no hit that was measured", raw, form, m.Misses-before.Misses)
			}
		}
	}
}

// TestHitAfterOtherChanges: after an unrelated change an entry is still a hit, and that hit does not allocate either.
func TestHitAfterOtherChanges(t *testing.T) {
	t.Parallel()
	r := open(t, resolver.Options{})
	apply(t, r, file("a.hcl", block("a", "a.example", "*.a.example")), file("b.hcl", block("b", "b.example")))
	names := []string{"a.example", "x.a.example", "unknown.test"}
	for _, name := range names {
		resolve(t, r, name, resolver.Nested)
	}
	r.Settle()
	before := r.Metrics()
	for i := range 50 {
		b := block("b", "b.example")
		b.Project.Name = fmt.Sprint("B ", i)
		apply(t, r, file("b.hcl", b))
		for _, name := range names {
			resolve(t, r, name, resolver.Nested)
		}
		if !strings.Contains(string(resolve(t, r, "b.example", resolver.Nested).Data), b.Project.Name) {
			t.Fatal("the changed project is stale")
		}
	}
	m := r.Metrics()
	if hits := m.Hits + m.NegativeHits - before.Hits - before.NegativeHits; hits != 150 || m.StoreReads-before.StoreReads != 50 {
		t.Errorf("%d hits and %d store reads, want 150 and 50", hits, m.StoreReads-before.StoreReads)
	}
	// A new wildcard affects the unknown name and the wildcard's answer, not the exact one.
	apply(t, r, file("c.hcl", block("c", "*.test")))
	before = r.Metrics()
	if resolve(t, r, "unknown.test", resolver.Nested).Slug != "c" {
		t.Error("the new wildcard is not seen")
	}
	resolve(t, r, "a.example", resolver.Nested)
	if m := r.Metrics(); m.Hits-before.Hits != 1 {
		t.Error("the exact name was lost to a wildcard elsewhere")
	}
}

// TestFlood mixes requests for unknown names with requests for known ones.
func TestFlood(t *testing.T) {
	t.Parallel()
	const projects = 400
	names := testrig.Size(t, 300_000, 20_000)
	r := open(t, resolver.Options{CacheBytes: 2 << 20})
	var files []catalog.FileChange
	for i := range projects {
		files = append(files, file(fmt.Sprintf("p%d.hcl", i), block(fmt.Sprintf("p%d", i), fmt.Sprintf("p%d.example", i))))
	}
	apply(t, r, files...)
	for i := range projects * 3 {
		resolve(t, r, fmt.Sprintf("p%d.example", i%projects), resolver.Nested)
	}
	r.Settle()
	before := r.Metrics()
	var asked uint64
	for i := range names {
		if a := resolve(t, r, fmt.Sprintf("n%d.flood.test", i), resolver.Nested); a.Code != catalog.CodeNotFound {
			t.Fatal(a.Code)
		}
		if i%10 == 0 {
			asked++
			resolve(t, r, fmt.Sprintf("p%d.example", rand.IntN(projects)), resolver.Nested)
		}
	}
	r.Settle()
	m := r.Metrics()
	if rate := float64(m.Hits-before.Hits) / float64(asked); rate < 0.95 {
		t.Errorf("%.1f%% of the known names were hits", 100*rate)
	}
	if m.CacheBytes > m.CacheLimit || m.UnknownBytes > m.UnknownLimit || m.UnknownLimit > m.CacheLimit/8 {
		t.Errorf("over the budget: %+v", m)
	}
}

// TestHerd: concurrent callers for a new name share one store read.
func TestHerd(t *testing.T) {
	t.Parallel()
	r := open(t, resolver.Options{})
	apply(t, r, file("a.hcl", block("a", "a.example")))
	const herd = 10_000
	var wg sync.WaitGroup
	start := make(chan struct{})
	for range herd {
		wg.Go(func() {
			<-start
			if a, err := r.Resolve([]byte("a.example"), resolver.Nested); err != nil || a.Slug != "a" {
				t.Error(a, err)
			}
		})
	}
	close(start)
	wg.Wait()
	if n := r.Metrics().StoreReads; n != 1 {
		t.Errorf("%d store reads for a herd of %d, want 1", n, herd)
	}
}

// TestTrackedProjects: the registry of stamps follows the cache, not the projects.
func TestTrackedProjects(t *testing.T) {
	t.Parallel()
	r := open(t, resolver.Options{})
	for i := range 100 {
		apply(t, r, file(fmt.Sprintf("p%d.hcl", i), block(fmt.Sprintf("p%d", i), fmt.Sprintf("p%d.example", i))))
	}
	if n := r.Metrics().TrackedProjects; n != 0 {
		t.Errorf("%d tracked, nothing was asked", n)
	}
	resolve(t, r, "p1.example", resolver.Nested)
	resolve(t, r, "p1.example", resolver.Flat)
	resolve(t, r, "p2.example", resolver.Nested)
	if n := r.Metrics().TrackedProjects; n != 2 {
		t.Errorf("%d tracked, want 2", n)
	}
}

// TestEveryAnswerIsKept: many answers built at the same time all get into ristretto.
func TestEveryAnswerIsKept(t *testing.T) {
	t.Parallel()
	r := open(t, resolver.Options{})
	var blocks []catalog.ProjectConfig
	for i := range 1000 {
		blocks = append(blocks, block(fmt.Sprintf("p%d", i), fmt.Sprintf("p%d.example", i)))
	}
	apply(t, r, file("a.hcl", blocks...))
	ask := func() {
		var all sync.WaitGroup
		for part := range 4 {
			all.Go(func() {
				for i := part; i < len(blocks); i += 4 {
					if a, err := r.Resolve([]byte(blocks[i].Domains[0].Name), resolver.Nested); err != nil || a.Slug != blocks[i].Project.Slug {
						t.Error(a, err)
					}
				}
			})
		}
		all.Wait()
	}
	ask()
	r.Settle()
	before := r.Metrics()
	ask()
	if m := r.Metrics(); m.Misses != before.Misses {
		t.Errorf("%d names did not come in", m.Misses-before.Misses)
	}
}

// TestRebuiltAtOnce: a name that changes just after its first answer was built still gets into the cache.
func TestRebuiltAtOnce(t *testing.T) {
	t.Parallel()
	r := open(t, resolver.Options{})
	for i := range 30 {
		p := block(fmt.Sprintf("p%d", i), fmt.Sprintf("p%d.example", i))
		apply(t, r, file(fmt.Sprintf("%d.hcl", i), p))
		resolve(t, r, p.Domains[0].Name, resolver.Nested)
		p.Project.Name = "Changed"
		apply(t, r, file(fmt.Sprintf("%d.hcl", i), p))
		testrig.Eventually(t, "the new answer is in the cache", func() bool {
			resolve(t, r, p.Domains[0].Name, resolver.Nested)
			r.Settle()
			before := r.Metrics()
			for range 10 {
				resolve(t, r, p.Domains[0].Name, resolver.Nested)
			}
			return r.Metrics().Misses == before.Misses
		})
	}
}
