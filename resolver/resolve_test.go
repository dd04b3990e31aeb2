package resolver_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

func TestMatching(t *testing.T) {
	t.Parallel()
	r := open(t, resolver.Options{})
	asleep, suspended, draft := block("asleep", "off.example", "*.off.deep.example"), block("suspended", "s.example"), block("draft", "d.example")
	asleep.Domains[0].Active, asleep.Domains[1].Active = false, false
	suspended.Project.Status, draft.Project.Status = catalog.StatusSuspended, catalog.StatusDraft
	apply(t, r,
		file("a.hcl", block("a", "a.example", "*.a.example", "*.example", "localhost", "xn--bcher-kva.example")),
		file("b.hcl", block("b", "*.b.a.example", "exact.b.a.example")),
		file("c.hcl", asleep, suspended, draft))

	check := func(raw, slug string, want catalog.Code, matched string) {
		t.Helper()
		// Twice: from the store and, usually, from the cache.
		for range 2 {
			a := resolve(t, r, raw, resolver.Nested)
			if a.Slug != slug || a.Code != want {
				t.Errorf("%q is %q %q, want %q %q", raw, a.Slug, a.Code, slug, want)
				continue
			}
			if (want == "") != (len(a.Data) > 0) || (want == "") != (a.ETag != "") {
				t.Errorf("%q: code %q with data %q and ETag %q", raw, a.Code, a.Data, a.ETag)
			}
			if matched != "" && !strings.Contains(string(a.Data), `"domain":"`+matched+`"`) {
				t.Errorf("%q did not match %s: %s", raw, matched, a.Data)
			}
		}
	}
	check("a.example", "a", "", "a.example")
	check("A.Example.:8443", "a", "", "a.example")
	check("x.a.example", "a", "", "*.a.example")
	check("y.x.a.example", "a", "", "*.a.example")
	check("b.a.example", "a", "", "*.a.example") // a wildcard does not match its own apex
	check("x.b.a.example", "b", "", "*.b.a.example")
	check("exact.b.a.example", "b", "", "exact.b.a.example")
	check("other.example", "a", "", "*.example")
	check("example", "", catalog.CodeNotFound, "")
	check("nowhere.test", "", catalog.CodeNotFound, "")
	check("test", "", catalog.CodeNotFound, "")
	check("localhost", "a", "", "localhost")
	check("bücher.example", "a", "", "xn--bcher-kva.example")
	check("BÜCHER。example", "a", "", "xn--bcher-kva.example")
	check("XN--bcher-kva.example", "a", "", "xn--bcher-kva.example")
	// The most specific match decides alone.
	check("off.example", "asleep", catalog.CodeDomainNotVerified, "")
	check("x.off.deep.example", "asleep", catalog.CodeDomainNotVerified, "")
	check("s.example", "suspended", catalog.CodeProjectSuspended, "")
	check("d.example", "draft", "", "d.example")
}

func TestBadDomains(t *testing.T) {
	t.Parallel()
	r := open(t, resolver.Options{})
	for _, raw := range []string{
		"", ".", "..", "a..b", ".a", "a..example", "*.a.example", "a b", "a\x00b", "127.0.0.1", "[::1]", "::1", "a:99999", "a:x",
		strings.Repeat("a", 64) + ".example", strings.Repeat("a.", 130) + "example", "xn--\xff.example", "xn--zzzzzz99999.example", "\xff\xfe.example",
	} {
		for _, form := range []resolver.Form{resolver.Nested, resolver.Flat, resolver.FlatSecrets} {
			a, err := r.Resolve([]byte(raw), form)
			if a != nil || code(err) != catalog.CodeValidation {
				t.Errorf("%q: %v, %v, want a VALIDATION_ERROR", raw, a, err)
				continue
			}
			if e := err.(*catalog.Error); len(e.Problems) != 1 || e.Problems[0].Path != "domain" || e.Problems[0].Message == "" || e.Message == "" {
				t.Errorf("%q: %+v", raw, e)
			}
		}
	}
}

// golden returns a project with every value set, and its two forms.
func golden() catalog.ProjectConfig {
	p := block("acme", "acme.example")
	p.Project.ID, p.Domains[0].ID, p.Domains[0].ProjectID = 12, 34, 12
	p.Project.UUID = catalog.UUID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	text := "a \"quoted\" <b> \\ line\nand\ttab \x01 ü 😀"
	p.Project.Description = &text
	p.Domains[0].Primary = true
	sms := "twilio"
	p.Service.ID, p.Service.MailEnabled, p.Service.SMSProvider = 56, true, &sms
	p.Auth.ID, p.Auth.RegistrationMode, p.Auth.InviteOnly, p.Auth.TwoFactorRequired = 78, catalog.RegistrationInviteOnly, true, true
	p.Auth.Token.JWTSecret = catalog.Secret{Source: catalog.SecretSealed, Ref: "c2VhbGVk"}
	p.SMTP = &catalog.SMTPConfig{ID: 9, Host: "smtp.acme.example", FromEmail: "hello@acme.example"}
	return p
}

const goldenNested = `{"project":{"id":12,"uuid":"01020304-0506-0708-090a-0b0c0d0e0f10","name":"The acme","slug":"acme",` +
	`"description":"a \"quoted\" <b> \\ line\nand\ttab \u0001 ü 😀","status":"ACTIVE",` +
	`"createdAt":"2026-01-31T09:30:00.123456","updatedAt":"2026-01-31T09:30:00.123456"},` +
	`"authSettings":{"id":78,"projectId":12,"registrationMode":"INVITE_ONLY","emailVerificationRequired":false,` +
	`"phoneVerificationRequired":false,"approvalRequired":false,"inviteOnly":true,"twoFactorRequired":true},` +
	`"serviceSettings":{"id":56,"projectId":12,"authEnabled":false,"mailEnabled":true,"smsEnabled":false,"auditEnabled":false},` +
	`"matchedDomain":{"id":34,"projectId":12,"domain":"acme.example","primary":true,"active":true,` +
	`"createdAt":"2026-01-31T09:30:00.123456","updatedAt":"2026-01-31T09:30:00.123456"}}`

const goldenFlat = `{"project":{"id":"12","uuid":"01020304-0506-0708-090a-0b0c0d0e0f10","name":"The acme","slug":"acme",` +
	`"description":"a \"quoted\" <b> \\ line\nand\ttab \u0001 ü 😀","status":"active",` +
	`"createdAt":"2026-01-31T09:30:00.123Z","updatedAt":"2026-01-31T09:30:00.123Z"},` +
	`"authSettings":{"jwtEnabled":true,"jwtSecret":null,"jwtExpiresIn":"15m","refreshTokenEnabled":true,"refreshTokenExpiresIn":"30d",` +
	`"sessionTimeout":3600,"twoFactorEnabled":true,"passwordMinLength":8,"passwordRequireUppercase":false,` +
	`"passwordRequireNumbers":false,"emailVerificationRequired":false},` +
	`"serviceSettings":{"mailEnabled":true,"mailProvider":"SMTP","mailFromAddress":"hello@acme.example","smsEnabled":false,` +
	`"smsProvider":"twilio","auditEnabled":false,"auditRetentionDays":90},"matchedDomain":"acme.example"}`

func TestForms(t *testing.T) {
	t.Parallel()
	r := open(t, resolver.Options{OpenSecret: func(s catalog.Secret, context string) (string, error) {
		if s.Ref != "c2VhbGVk" || context != "01020304-0506-0708-090a-0b0c0d0e0f10/jwt_secret" {
			t.Errorf("asked to open %q for %q", s.Ref, context)
		}
		return "top\"secret", nil
	}})
	apply(t, r, file("acme.hcl", golden()))
	check := func(form resolver.Form, want string) {
		t.Helper()
		a := resolve(t, r, "acme.example", form)
		if string(a.Data) != want {
			t.Errorf("form %d:\n%s\nwant\n%s", form, a.Data, want)
		}
		if !json.Valid([]byte(a.Data)) || a.ProjectID != 12 || a.Slug != "acme" {
			t.Errorf("form %d: %d %s", form, a.ProjectID, a.Slug)
		}
	}
	check(resolver.Nested, goldenNested)
	check(resolver.Flat, goldenFlat)
	check(resolver.FlatSecrets, strings.Replace(goldenFlat, `"jwtSecret":null`, `"jwtSecret":"top\"secret"`, 1))
	check(resolver.Flat, goldenFlat) // the secret is not in the cache
}

func TestDefaultsBlock(t *testing.T) {
	t.Parallel()
	r := open(t, resolver.Options{})
	a, b := block("a", "a.example"), block("b", "b.example")
	b.Service.AuditRetentionDays, b.Service.Said = 7, catalog.FieldSet(0).With(5)
	apply(t, r, file("a.hcl", a, b))
	days := func(name, want string) {
		t.Helper()
		if got := string(resolve(t, r, name, resolver.Flat).Data); !strings.Contains(got, `"auditRetentionDays":`+want+`}`) {
			t.Errorf("%s: %s, want %s days", name, got, want)
		}
	}
	days("a.example", "90")
	d := file("defaults.hcl")
	d.Declared.Defaults = &catalog.Defaults{Service: &catalog.ServiceSettings{AuditRetentionDays: 30, Said: catalog.FieldSet(0).With(5)}}
	apply(t, r, d)
	days("a.example", "30")
	days("b.example", "7")
	if s, err := r.ServiceSettings(a.Project.ID); err != nil || s.AuditRetentionDays != 30 {
		t.Errorf("settings in force: %+v, %v", s, err)
	}
	apply(t, r, gone("defaults.hcl"))
	days("a.example", "90")
}

func TestETags(t *testing.T) {
	t.Parallel()
	tags := func(now time.Time, change func(*catalog.ProjectConfig)) (nested, flat string) {
		r := open(t, resolver.Options{Now: func() time.Time { return now }})
		p := golden()
		change(&p)
		apply(t, r, file("acme.hcl", p))
		return resolve(t, r, "acme.example", resolver.Nested).ETag, resolve(t, r, "acme.example", resolver.Flat).ETag
	}
	nested, flat := tags(noon, func(*catalog.ProjectConfig) {})
	if nested == flat || len(nested) != 24 || nested[0] != '"' || nested[23] != '"' || strings.HasPrefix(nested, "W/") {
		t.Errorf("tags %s, %s", nested, flat)
	}
	// A fixed value: the tag must be the same on every node, and in every release.
	if want := `"XfWJJ03RfZ0O2ihpacOXQA"`; nested != want {
		t.Errorf("nested tag %s, want %s", nested, want)
	}
	if n, f := tags(noon.Add(time.Hour), func(*catalog.ProjectConfig) {}); n != nested || f != flat {
		t.Errorf("another node, another time: %s %s, want %s %s", n, f, nested, flat)
	}
	for name, change := range map[string]func(*catalog.ProjectConfig){
		"name":        func(p *catalog.ProjectConfig) { p.Project.Name += "x" },
		"description": func(p *catalog.ProjectConfig) { p.Project.Description = nil },
		"primary":     func(p *catalog.ProjectConfig) { p.Domains[0].Primary = false },
		"mail":        func(p *catalog.ProjectConfig) { p.Service.MailEnabled = false },
		"two factors": func(p *catalog.ProjectConfig) { p.Auth.TwoFactorRequired = false },
	} {
		n, f := tags(noon, change)
		if n == nested || f == flat && name != "primary" {
			t.Errorf("%s changed, but not the tags: %s, %s", name, n, f)
		}
	}
}
