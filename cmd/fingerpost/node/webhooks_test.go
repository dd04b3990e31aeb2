package node

import (
	"log/slog"
	"testing"

	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// TestListsBeforeTheChange: a project that was renamed or removed together with the lists that name it is judged by the
// lists before, also right after its slug was asked for.
func TestListsBeforeTheChange(t *testing.T) {
	r, err := resolver.Open(resolver.Options{CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	d := &declaredWebhooks{live: r, trail: r.Records, feed: r.Events(), log: slog.New(slog.DiscardHandler)}
	file := func(path string, is *catalog.Declared) catalog.FileChange {
		if is == nil {
			return catalog.FileChange{Path: path}
		}
		return catalog.FileChange{Path: path, Declared: is, Bytes: []byte(path), Row: &catalog.FileRow{Refs: is.Refs()}}
	}
	project := func(id int64, uuid, slug string) *catalog.Declared {
		return &catalog.Declared{Projects: []catalog.ProjectConfig{{Project: catalog.Project{ID: id,
			UUID: catalog.DeriveProjectUUID(uuid), Name: slug, Slug: slug, Status: catalog.StatusActive},
			Service: catalog.NewServiceSettings(), Auth: catalog.NewAuthSettings()}}}
	}
	hooks := func(lists map[string][]string) *catalog.Declared {
		is := &catalog.Declared{}
		for _, name := range []string{"crm", "other"} {
			w := catalog.NewWebhook(name)
			w.URL, w.Projects = "https://hooks.example/", lists[name]
			is.Webhooks = append(is.Webhooks, *w)
		}
		return is
	}
	apply := func(files ...catalog.FileChange) {
		t.Helper()
		if _, err := r.Apply(&catalog.Change{Files: files}); err != nil {
			t.Fatal(err)
		}
	}
	covers := func(what string, id int64, slug string, want ...bool) {
		t.Helper()
		list, _, _ := d.Webhooks()
		for i, h := range list {
			if got := h.Covers(id, slug); got != want[i] {
				t.Errorf("%s: %s covers project %d, slug %q: %v", what, h.Name, id, slug, got)
			}
		}
	}
	apply(file("acme.hcl", project(1, "acme", "acme")), file("two.hcl", project(2, "two", "two")),
		file("hooks.hcl", hooks(map[string][]string{"crm": {"acme", "two"}, "other": {"two"}})))
	covers("as declared", 1, "", true, false)
	apply(file("acme.hcl", project(1, "acme", "shop")),
		file("hooks.hcl", hooks(map[string][]string{"crm": {"shop", "two"}, "other": {"two"}})))
	covers("an entry from before the rename", 1, "acme", true, false)
	covers("the end of a mail", 1, "", true, false)
	apply(file("acme.hcl", nil), file("hooks.hcl", hooks(map[string][]string{"crm": {"two"}, "other": {"two"}})))
	covers("an entry from before the rename and the removal", 1, "acme", true, false)
	covers("the removal", 1, "shop", true, false)
	apply(file("hooks.hcl", hooks(map[string][]string{"crm": {}, "other": {"two"}}))) // by a person
	covers("an entry from before a list was shortened", 2, "two", false, true)
	covers("a project that never was", 3, "", false, false)
}
