package catalog_test

import (
	"slices"
	"testing"

	"fingerpost/resolver/catalog"
)

// TestLoginRuleMatches: the literal name of a claim comes before a path, only texts and lists of texts match, and an
// address counts only while it is verified.
func TestLoginRuleMatches(t *testing.T) {
	claims, err := catalog.ParseClaims([]byte(`{"groups":["/ops","dev",7,{"a":"x"}],"realm_access":{"roles":["admin"]},
		"a.b":"literal","a":{"b":"path"},"sub":"u1","level":3,"on":true,"email":"Ada@Agency.example"}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		claim, value string
		want         bool
	}{
		{"groups", "dev", true}, {"groups", "/ops", true}, {"groups", "ops", false}, {"groups", "Dev", false},
		{"groups", "7", false}, {"groups", "*ops", true}, {"groups", "de*", true}, {"groups", "x", false},
		{"realm_access.roles", "admin", true}, {"realm_access", "admin", false}, {"realm_access.roles.x", "admin", false},
		{"a.b", "literal", true}, {"a.b", "path", false}, {"sub", "u1", true}, {"level", "3", false},
		{"on", "true", false}, {"missing", "*x", false}, {"email", "*@agency.example", true},
		{"email", "ADA@agency.EXAMPLE", true}, {"email", "*@other.example", false},
	} {
		rule := catalog.LoginRule{Claim: c.claim, Value: c.value}
		if got := rule.Matches(claims); got != c.want {
			t.Errorf("%s = %q: %v, want %v", c.claim, c.value, got, c.want)
		}
	}
	email := catalog.LoginRule{Claim: "email", Value: "*@agency.example"}
	for _, unverified := range []any{false, "false", "False"} {
		claims["email_verified"] = unverified
		if email.Matches(claims) {
			t.Errorf("an address with email_verified %v matches", unverified)
		}
	}
	for _, verified := range []any{true, "true"} {
		claims["email_verified"] = verified
		if !email.Matches(claims) {
			t.Errorf("an address with email_verified %v does not match", verified)
		}
	}
}

// TestLoginGrants: grants stay pairs of permissions and projects.
func TestLoginGrants(t *testing.T) {
	login := catalog.Login{Rules: []catalog.LoginRule{
		{Claim: "groups", Value: "all", Allow: catalog.MayRead},
		{Claim: "groups", Value: "acme", Allow: catalog.MayWrite, Projects: []string{"acme"}},
		{Claim: "groups", Value: "other", Allow: catalog.MayAll},
	}}
	got := login.Grants(catalog.Claims{"groups": []any{"acme", "all"}})
	same := func(a, b catalog.Grant) bool { return a.Allow == b.Allow && slices.Equal(a.Projects, b.Projects) }
	want := []catalog.Grant{{Allow: catalog.MayRead}, {Allow: catalog.MayWrite, Projects: []string{"acme"}}}
	if !slices.EqualFunc(got, want, same) {
		t.Errorf("grants %+v, want %+v", got, want)
	}
	if got := login.Grants(catalog.Claims{"groups": []any{"nobody"}}); len(got) != 0 {
		t.Errorf("claims that no rule knows give %+v", got)
	}
}
