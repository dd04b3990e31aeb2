package resolver_test

import (
	"fmt"
	"testing"
	"time"

	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// numbered returns a project whose identity is the number, independent of its slug.
func numbered(id int64, slug string) catalog.ProjectConfig {
	p := block(slug)
	p.Project.ID, p.Project.UUID = id, catalog.UUID{15: byte(id)}
	return p
}

// TestKeysKeepProjects: a key covers the projects that its slugs name now; a Key that a caller still holds covers the
// projects that they named then, whichever project takes the slug later.
func TestKeysKeepProjects(t *testing.T) {
	t.Parallel()
	r := open(t, resolver.Options{})
	keys := func(slugs ...string) catalog.FileChange {
		f := file("keys.hcl")
		f.Declared.Keys = []catalog.Key{{Name: "k", ID: "abcdef", Allow: catalog.MayRead, Projects: slugs}}
		return f
	}
	now := func() *resolver.Key { return r.Keys().Lookup([]byte("abcdef")) }
	covers := func(what string, k *resolver.Key, want ...int64) {
		t.Helper()
		var got []int64
		for id := range int64(4) {
			if k.Covers(id) {
				got = append(got, id)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || len(k.ProjectIDs()) != len(want) || k.EveryProject() {
			t.Errorf("%s: covers %v, want %v; bound to %v", what, got, want, k.ProjectIDs())
		}
	}
	unknown := func(slugs ...string) {
		t.Helper()
		want := []catalog.UnknownSlug{}
		for _, slug := range slugs {
			want = append(want, catalog.UnknownSlug{ListHolder: catalog.ListHolder{Kind: catalog.KindKey, Name: "k"}, Slug: slug})
		}
		if got := r.UnknownSlugs(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("unknown: %v, want %v", got, want)
		}
	}
	apply(t, r, keys("a", "c"))
	covers("before there is a project", now())
	unknown("a", "c")
	apply(t, r, file("a.hcl", numbered(1, "a")))
	covers("with the project", now(), 1)
	unknown("c")
	held := now()
	apply(t, r, file("a.hcl", numbered(1, "b")), keys("b"))
	covers("renamed with the list", now(), 1)
	unknown()
	apply(t, r, file("new.hcl", numbered(2, "a")))
	covers("with another one of the old slug", now(), 1)
	covers("as it was held", held, 1)
	apply(t, r, file("a.hcl", numbered(1, "c")))
	covers("renamed without the list", now())
	unknown("b")
	apply(t, r, keys([]string{}...))
	covers("an empty list", now())
	apply(t, r, gone("new.hcl"), keys("a", "c"))
	covers("without the other one", now(), 1)
	unknown("a")
}

// TestNextKeyEnd: the next end is that of the first key that is still good, whatever the order of their names.
func TestNextKeyEnd(t *testing.T) {
	t.Parallel()
	r := open(t, resolver.Options{})
	now := time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)
	f := func(want time.Time, ends ...time.Time) {
		t.Helper()
		keys := file("keys.hcl")
		for i, end := range ends {
			keys.Declared.Keys = append(keys.Declared.Keys, catalog.Key{Name: fmt.Sprint("k", i), ID: fmt.Sprint("abcdef", i),
				Allow: catalog.MayRead, ExpiresAt: end})
		}
		apply(t, r, keys)
		if got := r.NextKeyEnd(now); !got.Equal(want) {
			t.Errorf("%v: %v, want %v", ends, got, want)
		}
	}
	day := 24 * time.Hour
	f(time.Time{})
	f(time.Time{}, time.Time{}, time.Time{})
	f(now.Add(day), time.Time{}, now.Add(2*day), now.Add(day), now.Add(-day))
	f(time.Time{}, now.Add(-day))
	f(time.Time{}, now) // it is refused from then on
	f(now.Add(1), now.Add(1))
}
