package resolver_test

import (
	"reflect"
	"slices"
	"testing"

	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// TestInbounds: declared inbound blocks are served as they are declared, and their lists of projects are known.
func TestInbounds(t *testing.T) {
	t.Parallel()
	r := open(t, resolver.Options{})
	some, all := catalog.NewInbound("ses"), catalog.NewInbound("relay")
	some.Format, some.Secrets = catalog.InboundSES, []catalog.Secret{{Source: catalog.SecretEnv, Ref: "A"}}
	some.Projects = []string{"acme", "gone"}
	all.Format = catalog.InboundJSON
	f := file("inbound.hcl")
	f.Declared.Inbounds = []catalog.Inbound{*some, *all}
	apply(t, r, f, file("acme.hcl", block("acme", "acme.example")))
	holder := catalog.ListHolder{Kind: catalog.KindInbound, Name: "ses"}
	if got := r.Inbounds(); !reflect.DeepEqual(got, []catalog.Inbound{*all, *some}) {
		t.Errorf("inbound blocks %+v", got)
	}
	if got := r.UnknownSlugs(); !slices.Equal(got, []catalog.UnknownSlug{{ListHolder: holder, Slug: "gone"}}) {
		t.Errorf("unknown slugs %v", got)
	}
	if got := r.ListsNaming("acme"); !slices.Equal(got, []catalog.ListHolder{holder}) {
		t.Errorf("lists with acme: %v", got)
	}
	apply(t, r, catalog.FileChange{Path: "inbound.hcl"})
	if got := r.Inbounds(); len(got) > 0 || len(r.UnknownSlugs()) > 0 {
		t.Errorf("after the file is gone: %v, %v", got, r.UnknownSlugs())
	}
}
