package catalog_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"fingerpost/resolver/catalog"
)

func TestTokenRules(t *testing.T) {
	t.Parallel()
	rsaKey, edKey := publicPEM(t, pairs()["RS256"].Public()), jwkOf(t, pairs()["EdDSA"].Public())
	url := func(text string) *string { return &text }
	f := func(r catalog.TokenRules, want ...string) {
		t.Helper()
		allow := &catalog.HTTPAllow{Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
		ps := r.Validate(allow)
		if got := paths(ps); !slices.Equal(got, want) {
			t.Errorf("%+v: problems on %q, want %q: %v", r, got, want, ps)
		}
		if text := fmt.Sprint(ps); strings.Contains(text, "BEGIN") || strings.Contains(text, "kty") {
			t.Errorf("a problem quotes a key: %s", text)
		}
	}
	hs, rs, both := []string{"HS256"}, []string{"RS256"}, []string{"HS256", "EdDSA"}
	f(catalog.NewTokenRules())
	f(catalog.TokenRules{}, "jwtAlgorithms")
	f(catalog.TokenRules{Algorithms: []string{"none"}, Keys: []string{edKey}}, "jwtAlgorithms", "jwtKeys")
	f(catalog.TokenRules{Algorithms: []string{"HS256", "HS256"}}, "jwtAlgorithms")
	f(catalog.TokenRules{Algorithms: rs, Keys: []string{rsaKey}})
	f(catalog.TokenRules{Algorithms: rs, Keys: []string{catalog.FileText("keys/a.pem"), rsaKey}})
	f(catalog.TokenRules{Algorithms: both, Keys: []string{edKey}})
	f(catalog.TokenRules{Algorithms: rs}, "jwtAlgorithms")
	f(catalog.TokenRules{Algorithms: both}, "jwtAlgorithms")
	f(catalog.TokenRules{Algorithms: both, Keys: []string{edKey, rsaKey, "x"}}, "jwtKeys", "jwtKeys")
	f(catalog.TokenRules{Algorithms: hs, Keys: []string{rsaKey}}, "jwtKeys")
	f(catalog.TokenRules{Algorithms: rs, Keys: slices.Repeat([]string{rsaKey}, 65)}, "jwtKeys")
	f(catalog.TokenRules{Algorithms: rs, Keys: []string{rsaKey}, KeySetURL: url("https://a.example/")}, "jwksUrl")
	f(catalog.TokenRules{Algorithms: hs, KeySetURL: url("https://a.example/")}, "jwksUrl")
	for _, good := range []string{"https://login.acme.example/jwks", "https://192.0.2.1:8443/a?b=c", "http://10.1.2.3/jwks"} {
		f(catalog.TokenRules{Algorithms: rs, KeySetURL: &good})
	}
	for _, bad := range []string{"", "x", "http://login.acme.example/jwks", "http://192.168.0.1/", "https://u:p@a.example/", "https://a.example/#x", "ftp://a.example/"} {
		f(catalog.TokenRules{Algorithms: rs, KeySetURL: &bad}, "jwksUrl")
	}
	f(catalog.TokenRules{Algorithms: hs, Issuer: url(""), Audience: url(strings.Repeat("x", 1025))}, "jwtIssuer", "jwtAudience")
}

// TestOwnRules: only with the issuer, and the audience or keys, of the block itself a token may name no project.
func TestOwnRules(t *testing.T) {
	t.Parallel()
	f := func(want bool, named ...string) {
		t.Helper()
		a := catalog.NewAuthSettings()
		say(t, a.Fields(), &a.Said, named...)
		defaults := catalog.NewAuthSettings()
		say(t, defaults.Fields(), &defaults.Said, "jwtIssuer", "jwtAudience", "jwtKeys", "jwksUrl")
		force := a.Over(&defaults)
		if force.OwnRules() != want {
			t.Errorf("%v: %t", named, force.OwnRules())
		}
	}
	f(false)
	f(false, "jwtIssuer")
	f(false, "jwtAudience", "jwtKeys")
	f(true, "jwtIssuer", "jwtAudience")
	f(true, "jwtIssuer", "jwtKeys")
	f(true, "jwtIssuer", "jwtKeys", "jwksUrl")
}
