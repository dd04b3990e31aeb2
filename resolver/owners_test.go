package resolver_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

func ownerKeys(owners ...string) catalog.FileChange {
	f := file("owners.hcl")
	for _, o := range owners {
		f.Declared.Keys = append(f.Declared.Keys, catalog.Key{Name: "of-" + o, ID: "of" + o, Allow: catalog.MayResolve, Owner: o, Projects: []string{}})
	}
	return f
}

func owned(p catalog.ProjectConfig, owner string) catalog.ProjectConfig {
	if p.Project.Owner = nil; owner != "" {
		p.Project.Owner = &owner
	}
	return p
}

// TestOwnersFollow: after any change the projects of each key with an owner are those that a walk over all finds, and no
// key is for every project. The keys come and go, one change touches more than an Effect names, and the service restarts.
func TestOwnersFollow(t *testing.T) {
	t.Parallel()
	o := resolver.Options{DataDir: t.TempDir(), CacheBytes: testCacheBytes, Logger: quiet}
	r, err := resolver.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string) {
		t.Helper()
		want := map[string][]int64{}
		if err := r.EachProject(func(p *catalog.Project) bool {
			if p.Owner != nil {
				want[*p.Owner] = append(want[*p.Owner], p.ID)
			}
			return true
		}); err != nil {
			t.Fatal(err)
		}
		for _, k := range r.Keys().All() {
			if got := k.ProjectIDs(); k.EveryProject() || !slices.Equal(got, want[k.Owner]) {
				t.Fatalf("%s: key of %s has %d projects, want %d", what, k.Owner, len(got), len(want[k.Owner]))
			}
			for _, id := range want[k.Owner] {
				if !k.Covers(id) {
					t.Fatalf("%s: key of %s does not cover %d", what, k.Owner, id)
				}
			}
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	owners := []string{"", "a", "b", "c"}
	for n := range 200 {
		slug := fmt.Sprintf("p%d", random.IntN(12))
		switch random.IntN(6) {
		case 0:
			apply(t, r, gone(slug+".hcl"))
		case 1:
			apply(t, r, ownerKeys(owners[1:1+random.IntN(4)]...))
		default:
			apply(t, r, file(slug+".hcl", owned(block(slug, slug+".example"), owners[random.IntN(4)])))
		}
		check(fmt.Sprintf("change %d", n))
	}
	apply(t, r, ownerKeys("a", "b", "c"))
	var many []catalog.ProjectConfig
	for n := range 5000 {
		many = append(many, owned(block(fmt.Sprintf("m%d", n)), owners[n%4]))
	}
	apply(t, r, file("many.hcl", many...))
	check("many at once")
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	r = open(t, o)
	check("after a restart")
	apply(t, r, gone("many.hcl"))
	check("without them")
}

// TestEventsOfOwners: a key with an owner is told of its projects, and that one has gone when it has another owner.
func TestEventsOfOwners(t *testing.T) {
	t.Parallel()
	r := open(t, resolver.Options{})
	apply(t, r, ownerKeys("a", "b"), keys("all", "p"))
	cursor, _ := r.Events().Newest()
	f := func(what string, want map[string]string, change ...catalog.FileChange) {
		t.Helper()
		apply(t, r, change...)
		events := drain(&cursor)
		for key, text := range want {
			if got := eventText(events, r.Keys().Lookup([]byte(key))); got != text {
				t.Errorf("%s: the key %s is told\n%s\nwant\n%s", what, key, got, text)
			}
		}
	}
	p := block("p", "p.example")
	const changed, deleted = "project.changed p: p.example", "project.deleted p: p.example"
	f("a new project", map[string]string{"ofa": changed, "ofb": "", "all": changed, "p": changed}, file("p.hcl", owned(p, "a")))
	f("a domain", map[string]string{"ofa": "domain.changed p: q.example", "ofb": ""}, file("p.hcl", owned(withDomains(p, "q.example"), "a")))
	f("back", map[string]string{"ofa": "domain.deleted p: q.example"}, file("p.hcl", owned(p, "a")))
	f("another owner", map[string]string{"ofa": deleted, "ofb": changed, "all": changed, "p": changed}, file("p.hcl", owned(p, "b")))
	renamed := p
	renamed.Project.Slug = "r"
	f("another slug", map[string]string{"ofa": "", "ofb": "project.changed r: p.example", "p": deleted}, file("p.hcl", owned(renamed, "b")))
	f("no owner", map[string]string{"ofb": "project.deleted r: p.example", "p": ""}, file("p.hcl", owned(renamed, "")))
	f("owned again", map[string]string{"ofb": "project.changed r: p.example"}, file("p.hcl", owned(renamed, "b")))
	f("gone", map[string]string{"ofa": "", "ofb": "project.deleted r: p.example"}, gone("p.hcl"))
}
