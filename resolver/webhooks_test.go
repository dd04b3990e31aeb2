package resolver_test

import (
	"reflect"
	"slices"
	"testing"

	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// TestWebhooks: declared webhooks are served as they are declared, and their lists of projects are known.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	r := open(t, resolver.Options{})
	w := catalog.NewWebhook("crm")
	w.URL, w.Secrets = "https://crm.example/", []catalog.Secret{{Source: catalog.SecretEnv, Ref: "A"}}
	w.Events, w.Projects = []string{"domain.*"}, []string{"acme", "gone"}
	plain := catalog.NewWebhook("plain")
	plain.Projects = []string{}
	hooks := file("hooks.hcl")
	hooks.Declared.Webhooks = []catalog.Webhook{*plain, *w}
	apply(t, r, hooks)
	unknown := func(slugs ...string) {
		t.Helper()
		var want []catalog.UnknownSlug
		for _, slug := range slugs {
			want = append(want, catalog.UnknownSlug{ListHolder: catalog.ListHolder{Kind: catalog.KindWebhook, Name: "crm"}, Slug: slug})
		}
		if got := r.UnknownSlugs(); !slices.Equal(got, want) {
			t.Errorf("unknown slugs %v, want %v", got, want)
		}
	}
	unknown("acme", "gone")
	apply(t, r, file("acme.hcl", block("acme", "acme.example")))
	unknown("gone")
	if got := r.Webhooks(); !reflect.DeepEqual(got, []catalog.Webhook{*w, *plain}) {
		t.Errorf("webhooks %+v", got)
	}
	if got := r.ListsNaming("acme"); !slices.Equal(got, []catalog.ListHolder{{Kind: catalog.KindWebhook, Name: "crm"}}) {
		t.Errorf("lists with acme: %v", got)
	}
	apply(t, r, catalog.FileChange{Path: "hooks.hcl"})
	if got := r.Webhooks(); len(got) > 0 || len(r.UnknownSlugs()) > 0 {
		t.Errorf("after the file is gone: %v, %v", got, r.UnknownSlugs())
	}
}
