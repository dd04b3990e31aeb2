package catalog_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"fingerpost/resolver/catalog"
)

func TestCheckVerified(t *testing.T) {
	t.Parallel()
	f := func(value, today, want string) {
		t.Helper()
		if got := catalog.CheckVerified(value, today); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q on %q: %q, want %q", value, today, got, want)
		}
	}
	const today, form, future = "2026-11-27", "must be", "is in the future: today is 2026-11-27 (UTC)"
	for _, good := range []string{"pending", "lost", today, "2026-11-26", "2024-02-29", "0001-01-01"} {
		f(good, today, "")
		f(good, "", "")
	}
	for _, tooLate := range []string{"2026-11-28", "2026-12-01", "2027-01-01", "9999-12-31"} {
		f(tooLate, today, future)
		f(tooLate, "", "")
	}
	for _, bad := range []string{"", " ", "PENDING", "pending ", "verified", "true", "2026-11-31", "2025-02-29", "26-11-24", "2026-1-4", "2026-11-24 ",
		"2026-11-24T00:00:00", "+2026-11-24", "10000-01-01", "２０２６-11-24", "2026-11-24\x00"} {
		f(bad, today, form)
		f(bad, "", form)
	}
}

func TestParseTarget(t *testing.T) {
	t.Parallel()
	f := func(text, want string) {
		t.Helper()
		got, err := catalog.ParseTarget(text)
		if (err != nil) != (want == "") || got != want {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
		if again, err := catalog.ParseTarget(got); want != "" && (err != nil || again != got) {
			t.Errorf("%q is not canonical: %q, %v", got, again, err)
		}
	}
	f("Edge.Example.NET.", "edge.example.net")
	f("bücher.example", "xn--bcher-kva.example")
	f("localhost", "localhost")
	f("203.0.113.4", "203.0.113.4")
	f("203.0.113.4/24", "203.0.113.0/24")
	f("0.0.0.0/0", "0.0.0.0/0")
	f("2001:DB8::4/32", "2001:db8::/32")
	f("::ffff:203.0.113.4", "203.0.113.4")
	for _, bad := range []string{"", " ", "*.example.net", "https://edge.example.net", "edge.example.net:443", "edge..net", "203.0.113.0/33", "203.0.113.0/-1",
		"203.0.113", "203.0.113.256", "::ffff:203.0.113.0/120", "fe80::1%eth0", "[2001:db8::1]", "a b", "edge.example.net/24"} {
		f(bad, "")
	}
}

// Why a domain is not verified, in the order in which the reasons count.
func TestNotVerified(t *testing.T) {
	t.Parallel()
	text := func(s string) *string { return &s }
	requiring := func(require string) *catalog.Defaults {
		v := catalog.NewVerification()
		v.Require = require
		return &catalog.Defaults{Verification: &v}
	}
	for _, c := range []struct {
		inactive bool
		verified *string
		defaults *catalog.Defaults
		want     catalog.NotVerified
	}{
		{},
		{defaults: new(catalog.Defaults)},
		{defaults: requiring(catalog.RequireNone)},
		{defaults: requiring(catalog.RequireProjectKeys)},
		{defaults: requiring(catalog.RequireAll), want: catalog.DomainUnproven},
		{verified: text("2026-11-24"), defaults: requiring(catalog.RequireAll)},
		{verified: text("pending"), want: catalog.DomainPending},
		{verified: text("lost"), defaults: requiring(catalog.RequireNone), want: catalog.DomainLost},
		{inactive: true, verified: text("pending"), defaults: requiring(catalog.RequireAll), want: catalog.DomainInactive},
	} {
		d := catalog.Domain{Active: !c.inactive, Verified: c.verified}
		got := d.NotVerified(c.defaults)
		if got != c.want {
			t.Errorf("%+v: %d, want %d", c, got, c.want)
		}
		if e := got.Refusal(); (e == nil) != (got == 0) || (got.Why() == "") != (got == 0) || e != nil && e.Code != catalog.CodeDomainNotVerified {
			t.Errorf("%d: %q, %v", got, got.Why(), e)
		}
	}
}

// A clone shares nothing that can be changed, and the trail lists the values of the block as people write them.
func TestVerificationBlock(t *testing.T) {
	t.Parallel()
	of := func() *catalog.Declared {
		pending := catalog.VerifiedPending
		v := catalog.NewVerification()
		v.Targets, v.CAs = []string{"edge.example.net"}, []string{"letsencrypt.org"}
		return &catalog.Declared{Defaults: &catalog.Defaults{Verification: &v},
			Projects: []catalog.ProjectConfig{{Domains: []catalog.Domain{{Name: "a.example", Verified: &pending}}}}}
	}
	d := of()
	c := d.Clone()
	v := c.Defaults.Verification
	v.Require, v.Targets[0], v.CAs[0] = catalog.RequireAll, "x", "y"
	*c.Projects[0].Domains[0].Verified = catalog.VerifiedLost
	if !reflect.DeepEqual(d, of()) {
		t.Errorf("a change of the clone changed the original: %+v", d.Defaults.Verification)
	}
	v.Grace = 90 * time.Second
	got := map[string]any{}
	for _, change := range catalog.FieldChanges(of().Defaults.AllFields(), c.Defaults.AllFields()) {
		got[change.Field] = []any{change.Before, change.After}
	}
	want := map[string]any{
		"verification.require": []any{"none", "all"}, "verification.targets": []any{[]string{"edge.example.net"}, []string{"x"}},
		"verification.cas": []any{[]string{"letsencrypt.org"}, []string{"y"}}, "verification.grace": []any{"72h", "1m30s"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the trail has %v\nwant %v", got, want)
	}
	for grace, want := range map[time.Duration]string{time.Second: "1s", time.Minute: "1m", 30 * time.Second: "30s", 10 * time.Hour: "10h", 100 * time.Minute: "1h40m"} {
		v.Grace = grace
		for _, f := range v.AllFields() {
			if f.Name == "grace" && f.Plain() != want {
				t.Errorf("%s is shown as %v", grace, f.Plain())
			}
		}
	}
}
