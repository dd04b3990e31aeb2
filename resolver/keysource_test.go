package resolver_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// TestKeySourcesFollow: after any change the projects that name a key set are those that a walk over all finds, also where
// the defaults name one, and after a restart.
func TestKeySourcesFollow(t *testing.T) {
	t.Parallel()
	o := resolver.Options{DataDir: t.TempDir(), CacheBytes: testCacheBytes, Logger: quiet}
	r, err := resolver.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	sets := 0
	check := func(what string) {
		t.Helper()
		var want []resolver.KeySource
		if err := r.EachProject(func(p *catalog.Project) bool {
			source, named, err := r.KeySource(p.ID)
			if err != nil {
				t.Fatal(err)
			}
			if named {
				want = append(want, source)
			}
			return true
		}); err != nil {
			t.Fatal(err)
		}
		got, err := r.KeySources()
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%s: %v, %v, want %v", what, got, err, want)
		}
		sets = max(sets, len(got))
	}
	naming := func(a *catalog.AuthSettings, url string) {
		a.Rules = catalog.NewTokenRules()
		if url != "" {
			a.Rules.Algorithms, a.Rules.KeySetURL = []string{"RS256"}, &url
		}
		for i, f := range a.Fields() {
			if f.Together != "" {
				a.Said = a.Said.With(i)
			}
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	urls := []string{"", "https://a.example/jwks", "https://b.example/jwks"}
	for n := range 200 {
		slug := fmt.Sprintf("p%d", random.IntN(8))
		switch random.IntN(6) {
		case 0:
			apply(t, r, gone(slug+".hcl"))
		case 1:
			f := file("defaults.hcl")
			f.Declared.Defaults = &catalog.Defaults{Auth: new(catalog.NewAuthSettings())}
			naming(f.Declared.Defaults.Auth, urls[random.IntN(3)])
			apply(t, r, f)
		case 2:
			apply(t, r, gone("defaults.hcl"), file(slug+".hcl", block(slug, slug+".example")))
		default:
			p := block(slug, slug+".example")
			naming(&p.Auth, urls[random.IntN(3)])
			apply(t, r, file(slug+".hcl", p))
		}
		check(fmt.Sprintf("change %d", n))
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	r = open(t, o)
	check("restart")
	if sets < 3 {
		t.Errorf("at most %d projects have named a key set", sets)
	}
}
