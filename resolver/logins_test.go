package resolver_test

import (
	"reflect"
	"slices"
	"testing"

	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// TestLogins: declared logins are served as they are declared, and the lists of projects of their rules are known. A rule
// without a list and one with an empty list stay apart: the first is for every project, the second for none.
func TestLogins(t *testing.T) {
	t.Parallel()
	r := open(t, resolver.Options{})
	l := catalog.NewLogin("company")
	l.Issuer, l.ClientID, l.ClientSecret = "https://login.example/", "fingerpost", catalog.Secret{Source: catalog.SecretEnv, Ref: "A"}
	l.Rules = []catalog.LoginRule{
		{Claim: "groups", Value: "ops", Allow: catalog.MayAll},
		{Claim: "groups", Value: "shop", Allow: catalog.MayRead, Projects: []string{"gone", "acme"}},
		{Claim: "email", Value: "*@agency.example", Allow: catalog.MayPropose, Projects: []string{"acme"}},
		{Claim: "groups", Value: "none", Allow: catalog.MayRead, Projects: []string{}},
	}
	plain := catalog.NewLogin("agency")
	logins := file("logins.hcl")
	logins.Declared.Logins = []catalog.Login{*l, *plain}
	apply(t, r, logins)
	holder := catalog.ListHolder{Kind: catalog.KindLogin, Name: "company"}
	unknown := func(slugs ...string) {
		t.Helper()
		var want []catalog.UnknownSlug
		for _, slug := range slugs {
			want = append(want, catalog.UnknownSlug{ListHolder: holder, Slug: slug})
		}
		if got := r.UnknownSlugs(); !slices.Equal(got, want) {
			t.Errorf("unknown slugs %v, want %v", got, want)
		}
	}
	unknown("acme", "gone")
	apply(t, r, file("acme.hcl", block("acme", "acme.example")))
	unknown("gone")
	got := r.Logins()
	if !reflect.DeepEqual(got, []catalog.Login{*plain, *l}) {
		t.Errorf("logins %+v", got)
	}
	if got := r.ListsNaming("acme"); !slices.Equal(got, []catalog.ListHolder{holder}) {
		t.Errorf("lists with acme: %v", got)
	}
	next := *l
	next.Rules = l.Rules[:1]
	logins.Declared = &catalog.Declared{Logins: []catalog.Login{next}}
	apply(t, r, logins)
	if now := r.Logins(); len(now) != 1 || len(now[0].Rules) != 1 || len(got[1].Rules) != 4 || len(r.UnknownSlugs()) > 0 {
		t.Errorf("after a change: %+v; the list of before: %+v", now, got)
	}
	apply(t, r, catalog.FileChange{Path: "logins.hcl"})
	if got := r.Logins(); len(got) > 0 || len(r.UnknownSlugs()) > 0 {
		t.Errorf("after the file is gone: %v, %v", got, r.UnknownSlugs())
	}
}
