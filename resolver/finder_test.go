package resolver

import (
	"log/slog"
	"testing"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/store"
)

// withProject returns a change that declares one project.
func withProject(slug string) *catalog.Change {
	u := catalog.DeriveProjectUUID(slug)
	d := &catalog.Declared{Projects: []catalog.ProjectConfig{{
		Project: catalog.Project{ID: catalog.DeriveID(catalog.KindProject, u), UUID: u, Name: slug, Slug: slug, Status: catalog.StatusActive},
		Service: catalog.NewServiceSettings(), Auth: catalog.NewAuthSettings(),
	}}}
	return &catalog.Change{Files: []catalog.FileChange{{Path: slug + ".hcl", Row: &catalog.FileRow{Refs: d.Refs()}, Declared: d}}}
}

func inMemory(t *testing.T, slug string) *Resolver {
	t.Helper()
	r, err := Open(Options{CacheBytes: 1 << 20, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	if _, err := r.Apply(withProject(slug)); err != nil {
		t.Fatal(err)
	}
	return r
}

func foundBy(t *testing.T, r *Resolver) (slugs []string) {
	t.Helper()
	rows, _, err := r.FindProjects(Search{}, Query{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range rows {
		slugs = append(slugs, p.Slug)
	}
	return slugs
}

// TestFinderFreshness: indexes are good for a search only if nobody is reading a change into them, and none waits.
func TestFinderFreshness(t *testing.T) {
	t.Parallel()
	r := inMemory(t, "acme")
	f := &r.finder
	foundBy(t, r)
	want := func(fresh bool, when string) {
		t.Helper()
		if got := f.fresh() != nil; got != fresh {
			t.Errorf("%s: fresh is %v", when, got)
		}
	}
	want(true, "after the first search")
	f.noteEffect(&store.Effect{Domains: []store.DomainEffect{{Name: "a.example", Project: 1}}})
	want(false, "after a change")
	x, touched, drops := f.takeTouched()
	if _, noted := touched[1]; !noted || len(touched) != 1 {
		t.Errorf("touched: %v", touched)
	}
	want(false, "while a search reads the change")
	f.publish(x, drops)
	f.release()
	want(true, "after that search")

	x, _, drops = f.takeTouched()
	f.noteEffect(&store.Effect{Many: true})
	f.publish(x, drops)
	f.release()
	want(false, "after a large change during a search")
	f.noteEffect(&store.Effect{Projects: []store.ProjectEffect{{ID: 2}}}) // nobody needs it
	if len(f.touched) > 0 {
		t.Error("without indexes a change is noted")
	}
	foundBy(t, r)
	want(true, "after a search that has built them again")
	for id := range int64(maxTouched + 1) {
		f.noteEffect(&store.Effect{Projects: []store.ProjectEffect{{ID: id}}})
	}
	if f.present != nil {
		t.Error("indexes that nobody uses are kept")
	}
}

// TestFinderAfterExchange: a store that replaces another one may have other content.
func TestFinderAfterExchange(t *testing.T) {
	t.Parallel()
	r, other := inMemory(t, "before"), inMemory(t, "after")
	if got := foundBy(t, r); len(got) != 1 || got[0] != "before" {
		t.Fatalf("%v", got)
	}
	mem, err := store.Open("", store.Options{Logger: r.options.Logger})
	if err != nil {
		t.Fatal(err)
	}
	if err := mem.Import(other.stores.Reads()); err != nil {
		t.Fatal(err)
	}
	old := r.stores.Reads()
	r.applying.Lock()
	err = r.exchange(mem, true)
	r.applying.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	if err := old.Close(); err != nil {
		t.Error(err)
	}
	if got := foundBy(t, r); len(got) != 1 || got[0] != "after" {
		t.Errorf("%v", got)
	}
}
