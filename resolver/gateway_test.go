package resolver_test

import (
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// A gateway's answer has header lines, and as many of them as there are labels, whatever the labels hold.
func TestGatewayLines(t *testing.T) {
	t.Parallel()
	p := golden()
	p.Project.Labels = []catalog.Label{
		{Name: "cost_center", Value: "42"}, {Name: "note", Value: "bücher\r\nX-Project-Id: 9"}, {Name: "plan", Value: "gold & 100% \"quoted\""}, {Name: "empty", Value: ""}, // has no header
	}
	lines, tag, _, _ := resolver.GatewayLines(p, p.Domains[0])
	want := strings.Join([]string{
		"X-Project-Id: 12",
		"X-Project-Uuid: 01020304-0506-0708-090a-0b0c0d0e0f10",
		"X-Project-Slug: acme",
		"X-Project-Status: ACTIVE",
		"X-Matched-Domain: acme.example",
		"X-Auth-Enabled: false",
		"X-Registration-Mode: INVITE_ONLY",
		"X-Label-Cost-Center: 42",
		"X-Label-Note: b%C3%BCcher%0D%0AX-Project-Id: 9",
		"X-Label-Plan: gold & 100%25 \"quoted\"",
	}, "\r\n") + "\r\n"
	if lines != want {
		t.Errorf("the lines are\n%s\nwant\n%s", lines, want)
	}
	p.Project.Labels[0].Value = "43"
	if _, other, _, _ := resolver.GatewayLines(p, p.Domains[0]); other == tag || len(tag) != 24 {
		t.Errorf("the tags %s and %s, of different labels", tag, other)
	}
}

func TestMayHaveCertificate(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	f := func(name string, says *bool, want, wantUnderWildcards bool) {
		t.Helper()
		p := block("acme", name)
		p.Domains[0].Certificates = says
		if _, _, own, under := resolver.GatewayLines(p, p.Domains[0]); own != want || under != wantUnderWildcards {
			t.Errorf("%s: %v, and %v where wildcards may; want %v, %v", name, own, under, want, wantUnderWildcards)
		}
	}
	f("acme.example", nil, true, true)
	f("acme.example", &yes, true, true)
	f("acme.example", &no, false, false)
	f("*.acme.example", nil, false, true)
	f("*.acme.example", &yes, true, true)
	f("*.acme.example", &no, false, false) // the record's word goes before the flag
}

// The form follows the settings in force, changes with the files, and serves tokens.
func TestGatewayAnswers(t *testing.T) {
	l := &lock{values: map[string]string{"SECRET": "s3cret"}}
	r := open(t, resolver.Options{OpenSecret: l.open})
	p := withSecret("acme", catalog.SecretEnv, "SECRET", "acme.example", "*.acme.example")
	asleep := block("asleep", "off.example")
	asleep.Domains[0].Active = false
	apply(t, r, file("acme.hcl", p), file("asleep.hcl", asleep))
	for range 2 { // from the store, and from the cache
		a := resolve(t, r, "shop.ACME.example.:443", resolver.Gateway)
		if text := string(a.Data); !strings.Contains(text, "X-Auth-Enabled: true\r\n") || !strings.Contains(text, "X-Matched-Domain: *.acme.example\r\n") || a.ETag == "" {
			t.Errorf("%s %q", a.ETag, a.Data)
		}
		if keys, err := r.TokenKeys(a); err != nil || string(keys.Secret) != "s3cret" {
			t.Errorf("the keys are %v, %v", keys, err)
		}
		if a.MayHaveCertificate(false) || !a.MayHaveCertificate(true) || !resolve(t, r, "acme.example", resolver.Gateway).MayHaveCertificate(false) {
			t.Error("certificates are for the exact name only, unless wildcards may have them")
		}
		r.Settle()
	}
	// Each form has its own answers.
	if nested := resolve(t, r, "shop.acme.example", resolver.Nested); nested.Data[0] != '{' {
		t.Errorf("the nested form is %q", nested.Data)
	}
	for name, want := range map[string]catalog.Code{"off.example": catalog.CodeDomainNotVerified, "unknown.example": catalog.CodeNotFound} {
		if a := resolve(t, r, name, resolver.Gateway); a.Code != want || a.Data != "" || a.MayHaveCertificate(true) {
			t.Errorf("%s: %s %q, want %s", name, a.Code, a.Data, want)
		}
	}
	before := resolve(t, r, "acme.example", resolver.Gateway).ETag
	p.Project.Status = catalog.StatusDraft
	apply(t, r, file("acme.hcl", p))
	if a := resolve(t, r, "acme.example", resolver.Gateway); a.ETag == before || !strings.Contains(string(a.Data), "X-Project-Status: DRAFT\r\n") {
		t.Errorf("after the change: %s %q", a.ETag, a.Data)
	}
	r.Settle()
	if n := testing.AllocsPerRun(100, func() { resolve(t, r, "shop.acme.example", resolver.Gateway) }); n > 1 && !testrig.Race { // resolve makes a []byte
		t.Errorf("a hit allocates %v times", n)
	}
}
