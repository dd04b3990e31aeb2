package resolver_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

func slugsFound(t testing.TB, r *resolver.Resolver, s resolver.Search, q resolver.Query) (slugs []string) {
	t.Helper()
	rows, total, err := r.FindProjects(s, q)
	if err != nil {
		t.Error(err)
	}
	for _, p := range rows {
		slugs = append(slugs, p.Slug)
	}
	if q.Limit == 0 && total != len(rows) {
		t.Errorf("%+v: %d rows of %d", s, len(rows), total)
	}
	return slugs
}

func namesFound(t testing.TB, r *resolver.Resolver, text string, ids []int64) (names []string) {
	t.Helper()
	rows, _, err := r.FindDomains(resolver.Search{Text: text}, resolver.Query{IDs: ids})
	if err != nil {
		t.Error(err)
	}
	for _, d := range rows {
		names = append(names, d.Name)
	}
	return names
}

// change is apply for a goroutine that is not the test's own.
func change(t testing.TB, r *resolver.Resolver, file catalog.FileChange) {
	t.Helper()
	if _, err := r.Apply(&catalog.Change{Files: []catalog.FileChange{file}}); err != nil {
		t.Error(err)
	}
}

// TestFindFollowsChanges: a search has every change that was acknowledged before it.
func TestFindFollowsChanges(t *testing.T) {
	t.Parallel()
	r := open(t, resolver.Options{})
	f := func(text string, projects, domains []string) {
		t.Helper()
		if got := slugsFound(t, r, resolver.Search{Text: text}, resolver.Query{}); !slices.Equal(got, projects) {
			t.Errorf("projects with %q: %v, want %v", text, got, projects)
		}
		if got := namesFound(t, r, text, nil); !slices.Equal(got, domains) {
			t.Errorf("domains with %q: %v, want %v", text, got, domains)
		}
	}
	list := func(of ...string) []string { return of }
	f("acme", nil, nil)
	apply(t, r, file("acme.hcl", block("acme", "shop.acme.example")), file("globex.hcl", block("globex", "globex.example")))
	f("acme", list("acme"), list("shop.acme.example"))
	apply(t, r, file("acme.hcl", block("acme", "shop.example")), file("globex.hcl", block("globex", "globex.example", "acme.globex.example")))
	f("acme", list("acme", "globex"), list("acme.globex.example"))
	f("shop.", list("acme"), list("shop.example"))
	apply(t, r, file("globex.hcl", block("globex", "shop.example")), file("acme.hcl", block("acme"))) // it moves
	f("shop.", list("globex"), list("shop.example"))
	apply(t, r, gone("acme.hcl"), file("initech.hcl", block("initech", "*.initech.example")))
	f("acme", nil, nil)
	f("*.", list("initech"), list("*.initech.example"))
	suspended := block("initech")
	suspended.Project.Status = catalog.StatusSuspended
	apply(t, r, file("initech.hcl", suspended))
	if got := slugsFound(t, r, resolver.Search{Status: catalog.StatusSuspended}, resolver.Query{}); !slices.Equal(got, list("initech")) {
		t.Errorf("suspended: %v", got)
	}
	if got := slugsFound(t, r, resolver.Search{Status: catalog.StatusActive, Text: "init"}, resolver.Query{}); got != nil {
		t.Errorf("active: %v", got)
	}
}

// TestFindPagesAndSort: a page is a part of the whole, and a field to sort by decides alone.
func TestFindPagesAndSort(t *testing.T) {
	t.Parallel()
	r := open(t, resolver.Options{})
	names := map[string]string{"acme": "c", "my-acme": "b", "acme-two": "a"}
	var ids []int64
	for slug, name := range names {
		p := block(slug, slug+".example")
		p.Project.Name = name
		ids = append(ids, p.Project.ID)
		apply(t, r, file(slug+".hcl", p))
	}
	f := func(q resolver.Query, want ...string) {
		t.Helper()
		if got := slugsFound(t, r, resolver.Search{Text: "ACME"}, q); !slices.Equal(got, want) {
			t.Errorf("%+v: %v, want %v", q, got, want)
		}
	}
	f(resolver.Query{}, "acme", "acme-two", "my-acme")
	f(resolver.Query{Page: 2, Limit: 2}, "my-acme")
	f(resolver.Query{Page: 3, Limit: 2})
	f(resolver.Query{Sort: "name"}, "acme-two", "my-acme", "acme")
	f(resolver.Query{Sort: "name", Desc: true, Page: 1, Limit: 1}, "acme")
	f(resolver.Query{IDs: []int64{}})
	if _, _, err := r.FindProjects(resolver.Search{Text: "a"}, resolver.Query{Sort: "nothing"}); code(err) != catalog.CodeValidation {
		t.Errorf("sorted by nothing: %v", err)
	}
	all, err := r.FoundProjects(resolver.Search{}, nil)
	slices.Sort(ids)
	if err != nil || len(all) != 3 || all[0].ID != ids[0] || all[1].ID != ids[1] || all[2].ID != ids[2] {
		t.Errorf("without a text: %v, %v, want %v", all, err, ids)
	}
	if got := namesFound(t, r, "acme", ids[:1]); len(got) != 1 {
		t.Errorf("domains of one project: %v", got)
	}
}

// TestFindManyChanges: a change that is too large to be described is found as well, and so is one after it.
func TestFindManyChanges(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	r := open(t, resolver.Options{})
	apply(t, r, file("first.hcl", block("first", "first.example")))
	slugsFound(t, r, resolver.Search{}, resolver.Query{})
	const many = 5000
	var projects []catalog.ProjectConfig
	for i := range many {
		projects = append(projects, block(fmt.Sprintf("p%d", i), fmt.Sprintf("p%d.example", i)))
	}
	apply(t, r, file("many.hcl", projects...))
	if got := len(slugsFound(t, r, resolver.Search{}, resolver.Query{})); got != many+1 {
		t.Errorf("%d projects", got)
	}
	if got := len(namesFound(t, r, "P", nil)); got != resolver.MaxSearchMatches {
		t.Errorf("%d domains", got)
	}
	apply(t, r, gone("many.hcl"))
	if got := namesFound(t, r, "", nil); !slices.Equal(got, []string{"first.example"}) {
		t.Errorf("%v", got)
	}
}

// TestFindOutlivesTheStore: after the disk was lost, a search sees the store in memory, and the disk again later.
func TestFindOutlivesTheStore(t *testing.T) {
	t.Parallel()
	dir, g := filepath.Join(t.TempDir(), "data"), new(gate)
	r := open(t, resolver.Options{
		DataDir: dir, Disk: resolver.DiskOptions{CheckEvery: fast.CheckEvery, RetryEvery: fast.RetryEvery, Probe: g.probe},
	})
	apply(t, r, file("acme.hcl", block("acme", "shop.acme.example")))
	if got := namesFound(t, r, "shop", nil); len(got) != 1 {
		t.Fatalf("%v", got)
	}
	remove(t, dir)
	testrig.Eventually(t, "the loss is noticed", degraded(r))
	apply(t, r, file("globex.hcl", block("globex", "shop.globex.example")))
	if got := namesFound(t, r, "shop", nil); !slices.Equal(got, []string{"shop.acme.example", "shop.globex.example"}) {
		t.Errorf("%v", got)
	}
	g.open.Store(true)
	testrig.Eventually(t, "the store is back", healthy(r))
	apply(t, r, gone("acme.hcl"))
	if got := namesFound(t, r, "shop", nil); !slices.Equal(got, []string{"shop.globex.example"}) {
		t.Errorf("%v", got)
	}
}

// TestFindDuringChanges: searches and changes at the same time. A project whose change was acknowledged is found under
// its new name at once, and under no other one.
func TestFindDuringChanges(t *testing.T) {
	t.Parallel()
	r := open(t, resolver.Options{})
	const writers, changes = 4, 60
	for w := range writers {
		apply(t, r, file(fmt.Sprint(w), block(fmt.Sprintf("w%d", w))))
	}
	stop := make(chan struct{})
	var readers, group sync.WaitGroup
	for i := range 2 {
		readers.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			for {
				select {
				case <-stop:
					return
				default:
				}
				text := fmt.Sprintf("w%d", random.IntN(writers))
				if got := slugsFound(t, r, resolver.Search{Text: text}, resolver.Query{Page: 1, Limit: 1}); len(got) != 1 || got[0] != text {
					t.Errorf("%s: %v", text, got)
					return
				}
			}
		})
	}
	for w := range writers {
		group.Go(func() {
			slug := fmt.Sprintf("w%d", w)
			for n := range changes {
				p := block(slug, fmt.Sprintf("n%d.%s.example", n, slug))
				p.Project.Name = fmt.Sprintf("name %d of %s!", n, slug)
				change(t, r, file(fmt.Sprint(w), p))
				got, _, err := r.FindProjects(resolver.Search{Text: strings.ToUpper(p.Project.Name)}, resolver.Query{})
				if err != nil || len(got) != 1 || got[0].Name != p.Project.Name {
					t.Errorf("%s: %v, %v", p.Project.Name, got, err)
					return
				}
				if got := namesFound(t, r, slug+".example", nil); len(got) != 1 || got[0] != p.Domains[0].Name {
					t.Errorf("%s: %v, want %s", slug, got, p.Domains[0].Name)
					return
				}
			}
		})
	}
	group.Wait()
	close(stop)
	readers.Wait()
}

// TestFindDuringLargeChanges: changes that drop the indexes, while other searches build them. What was acknowledged is
// found.
func TestFindDuringLargeChanges(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	r := open(t, resolver.Options{})
	var projects []catalog.ProjectConfig
	for i := range 4200 { // more than an effect names
		projects = append(projects, block(fmt.Sprintf("p%d", i)))
	}
	var group sync.WaitGroup
	group.Go(func() {
		for n := range 4 {
			declared := slices.Clone(projects)
			for i := range declared {
				declared[i].Project.Name = fmt.Sprintf("large %d of %d.", n, i)
			}
			change(t, r, file("many.hcl", declared...))
			for _, i := range []int{0, 4199} {
				text := declared[i].Project.Name
				if got := slugsFound(t, r, resolver.Search{Text: text}, resolver.Query{}); !slices.Equal(got, []string{declared[i].Project.Slug}) {
					t.Errorf("%q: %v", text, got)
				}
			}
		}
	})
	for w := range 2 {
		group.Go(func() {
			slug := fmt.Sprintf("small-%d", w)
			for n := range 30 {
				name := fmt.Sprintf("n%d.%s.example", n, slug)
				change(t, r, file(slug, block(slug, name)))
				if got := namesFound(t, r, slug, nil); !slices.Equal(got, []string{name}) {
					t.Errorf("%s: %v, want %s", slug, got, name)
				}
			}
		})
	}
	group.Wait()
}
