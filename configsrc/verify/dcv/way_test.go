package dcv_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"fingerpost/configsrc/verify/dcv"
	"fingerpost/resolver/catalog"
)

var acme = catalog.DeriveProjectUUID("acme")

// TestToken has a vector that configsrc/verify/README.md shows how to compute.
func TestToken(t *testing.T) {
	const want = "472jyvfzitf2yjjkzwbfndvlst"
	if got := dcv.Token(acme, dcv.ScopeExact, "shop.acme.example"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{want, acme.String()} {
		if !strings.Contains(string(text), part) {
			t.Errorf("configsrc/verify/README.md does not show %s", part)
		}
	}
}

// TestTokensDiffer: whatever differs, the token does.
func TestTokensDiffer(t *testing.T) {
	seen := map[string]string{}
	for _, project := range []string{"acme", "globex"} {
		for _, scope := range []dcv.Scope{dcv.ScopeExact, dcv.ScopeWildcard, dcv.ScopeDomain} {
			for _, name := range []string{"acme.example", "shop.acme.example", "acme.example2"} {
				of := project + " " + string(scope) + " " + name
				token := dcv.Token(catalog.DeriveProjectUUID(project), scope, name)
				if seen[token] != "" {
					t.Errorf("%s and %s have one token", of, seen[token])
				}
				if seen[token] = of; len(token) != 26 || strings.Trim(token, "abcdefghijklmnopqrstuvwxyz234567") != "" {
					t.Errorf("%s: %q", of, token)
				}
			}
		}
	}
}

func TestWays(t *testing.T) {
	policy := dcv.Policy{Hosts: []string{"edge.example.net"}}
	f := func(name string, want ...string) {
		t.Helper()
		var got []string
		for _, w := range dcv.Ways(dcv.Subject{Project: acme, Name: name}, policy) {
			scoped := strings.TrimPrefix(w.Name, "_fingerpost-domain-challenge.")
			if w.Scope != dcv.ScopeDomain {
				scoped = strings.TrimPrefix(name, "*.")
			}
			target := ""
			if w.Type == "CNAME" {
				target = w.Token + ".edge.example.net"
			}
			if w.Token != dcv.Token(acme, w.Scope, scoped) || w.Target != target {
				t.Errorf("%s: %+v", name, w)
			}
			got = append(got, string(w.Scope)+" "+w.Type+" "+w.Name)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	const domain = "domain TXT _fingerpost-domain-challenge."
	f("acme.example", "exact TXT _fingerpost-challenge.acme.example", "exact CNAME acme.example", domain+"acme.example")
	f("a.shop.acme.co.uk", "exact TXT _fingerpost-challenge.a.shop.acme.co.uk", "exact CNAME a.shop.acme.co.uk",
		domain+"a.shop.acme.co.uk", domain+"shop.acme.co.uk", domain+"acme.co.uk")
	f("*.shop.acme.example", "wildcard TXT _fingerpost-wildcard-challenge.shop.acme.example",
		domain+"shop.acme.example", domain+"acme.example")
	f("github.io", "exact TXT _fingerpost-challenge.github.io", "exact CNAME github.io") // no one's to prove for others
	f("acme.github.io", "exact TXT _fingerpost-challenge.acme.github.io", "exact CNAME acme.github.io", domain+"acme.github.io")
	// city.kawasaki.jp is an exception below the rule *.kawasaki.jp: kawasaki.jp is not its owner's
	f("city.kawasaki.jp", "exact TXT _fingerpost-challenge.city.kawasaki.jp", "exact CNAME city.kawasaki.jp",
		domain+"city.kawasaki.jp")
	f("localhost", "exact TXT _fingerpost-challenge.localhost", "exact CNAME localhost")
	f("1.2.3.4.5.6.7.8.9.acme.example", "exact TXT _fingerpost-challenge.1.2.3.4.5.6.7.8.9.acme.example",
		"exact CNAME 1.2.3.4.5.6.7.8.9.acme.example",
		domain+"1.2.3.4.5.6.7.8.9.acme.example", domain+"4.5.6.7.8.9.acme.example", domain+"5.6.7.8.9.acme.example",
		domain+"6.7.8.9.acme.example", domain+"7.8.9.acme.example", domain+"8.9.acme.example", domain+"9.acme.example",
		domain+"acme.example")
}

// TestWaysTooLong: a record whose name DNS has no room for is not a way.
func TestWaysTooLong(t *testing.T) {
	policy := dcv.Policy{Hosts: []string{"edge.example.net", strings.Repeat("a.", 113) + "b"}}
	long := strings.Repeat("aaaaaaaaa.", 22) + "acme.example" // 232 octets
	count := func(name string, kind string) (n int) {
		for _, w := range dcv.Ways(dcv.Subject{Project: acme, Name: name}, policy) {
			if len(w.Name) > 253 || len(w.Target) > 253 {
				t.Errorf("%+v", w)
			}
			if w.Type == kind {
				n++
			}
		}
		return n
	}
	for _, c := range []struct {
		name       string
		txt, cname int
	}{
		{long[1:], 8, 1}, // 231 and 22 is 253: the exact label fits, the domain's does not
		{long, 7, 1},
		{"*." + long, 7, 0},
	} {
		if txt, cname := count(c.name, "TXT"), count(c.name, "CNAME"); txt != c.txt || cname != c.cname {
			t.Errorf("%d octets: %d TXT and %d CNAME, want %d and %d", len(c.name), txt, cname, c.txt, c.cname)
		}
	}
}

func TestPointingName(t *testing.T) {
	f := func(name, want string) {
		t.Helper()
		if got := dcv.PointingName(dcv.Subject{Name: name}); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	f("shop.acme.example", "shop.acme.example")
	f("*.acme.example", "fingerpost-check.acme.example")
	f("*."+strings.Repeat("a.", 120)+"b", "")
}
