package catalog_test

import (
	"slices"
	"strings"
	"testing"

	"fingerpost/resolver/catalog"
)

func TestSnake(t *testing.T) {
	f := func(camel, want string) {
		t.Helper()
		if got := catalog.Snake(camel); got != want {
			t.Errorf("Snake(%q) = %q, want %q", camel, got, want)
		}
	}
	f("", "")
	f("name", "name")
	f("authEnabled", "auth_enabled")
	f("emailVerificationRequired", "email_verification_required")
	f("bodyHtml", "body_html")
	f("caFile", "ca_file")
}

// TestFieldNames: no noun lists an attribute twice, in either spelling, and its fields fit into a FieldSet.
func TestFieldNames(t *testing.T) {
	f := func(noun string, fields []catalog.Field) {
		t.Helper()
		seen := map[string]bool{}
		for _, field := range fields {
			attribute := catalog.Snake(field.Name)
			if seen[attribute] {
				t.Errorf("%s has %q twice", noun, attribute)
			}
			seen[attribute] = true
			if strings.Trim(attribute, "abcdefghijklmnopqrstuvwxyz_") != "" {
				t.Errorf("%s has the attribute %q", noun, attribute)
			}
		}
		if len(fields) > 32 {
			t.Errorf("%s has %d fields; a FieldSet holds 32", noun, len(fields))
		}
	}
	f("project", new(catalog.Project).Fields())
	f("domain", new(catalog.Domain).Fields())
	f("service settings", new(catalog.ServiceSettings).Fields())
	f("auth settings", new(catalog.AuthSettings).Fields())
	f("SMTP config", new(catalog.SMTPConfig).Fields())
	f("template", new(catalog.Template).Fields())
}

func TestFieldSet(t *testing.T) {
	var s catalog.FieldSet
	for _, i := range []int{0, 7, 31} {
		if s.Has(i) {
			t.Errorf("the set has %d too early", i)
		}
		s = s.With(i).With(i)
	}
	for i := range 32 {
		if want := i == 0 || i == 7 || i == 31; s.Has(i) != want {
			t.Errorf("Has(%d) = %v", i, s.Has(i))
		}
	}
}

func TestCheckSlug(t *testing.T) {
	for _, good := range []string{"a", "9", "acme", "acme-shop", "a--b", "resolver", "by-slugs", strings.Repeat("a", 63)} {
		if msg := catalog.CheckSlug(good); msg != "" {
			t.Errorf("CheckSlug(%q) = %q", good, msg)
		}
	}
	for _, bad := range []string{"", "-", "-a", "a-", "A", "a_b", "a.b", "a b", "ä", "a\n", "a\x00", "\xff", "resolve", "by-slug", strings.Repeat("a", 64)} {
		if msg := catalog.CheckSlug(bad); msg == "" {
			t.Errorf("CheckSlug(%q) finds nothing", bad)
		}
	}
}

func TestProjectValidate(t *testing.T) {
	f := func(change func(p *catalog.Project), want ...string) {
		t.Helper()
		p := catalog.Project{Name: "Acme", Slug: "acme", Status: catalog.StatusActive}
		change(&p)
		if got := paths(p.Validate()); !slices.Equal(got, want) {
			t.Errorf("problems on %q, want %q", got, want)
		}
	}
	describe := func(s string) *string { return &s }
	f(func(p *catalog.Project) {})
	f(func(p *catalog.Project) { p.Name = "\u3000" }, "name")
	f(func(p *catalog.Project) { p.Name = "A\tB" }, "name")
	f(func(p *catalog.Project) { p.Name = strings.Repeat("ü", 120) })
	f(func(p *catalog.Project) { p.Name = strings.Repeat("ü", 121) }, "name")
	f(func(p *catalog.Project) { p.Description = describe("") })
	f(func(p *catalog.Project) { p.Description = describe(strings.Repeat("ü", 2000)) })
	f(func(p *catalog.Project) { p.Description = describe(strings.Repeat("ü", 2001)) }, "description")
	f(func(p *catalog.Project) { p.Status = "active" }, "status")
	f(func(p *catalog.Project) { *p = catalog.Project{} }, "name", "slug", "status")
}

func TestRefs(t *testing.T) {
	acme := catalog.DeriveProjectUUID("acme")
	d := catalog.Declared{
		Projects: []catalog.ProjectConfig{{
			Project:   catalog.Project{ID: 5, UUID: acme, Slug: "acme"},
			Domains:   []catalog.Domain{{ID: 6, Name: "acme.example"}, {ID: 7, Name: "*.acme.example"}},
			Templates: []catalog.Template{{ID: 8, Code: "WELCOME"}},
		}},
		Templates: []catalog.Template{{ID: 9, Code: "WELCOME"}},
		Keys:      []catalog.Key{{Name: "checkout"}},
		Webhooks:  []catalog.Webhook{*catalog.NewWebhook("crm")},
		Logins:    []catalog.Login{*catalog.NewLogin("company")},
		Inbounds:  []catalog.Inbound{*catalog.NewInbound("ses")},
		Defaults:  &catalog.Defaults{},
		Sealing:   &catalog.Sealing{},
	}
	want := []catalog.Ref{
		{Kind: catalog.KindProject, Name: "acme", UUID: acme, ID: 5},
		{Kind: catalog.KindDomain, Name: "acme.example", ID: 6, ProjectID: 5},
		{Kind: catalog.KindDomain, Name: "*.acme.example", ID: 7, ProjectID: 5},
		{Kind: catalog.KindTemplate, Name: "WELCOME", ID: 8, ProjectID: 5},
		{Kind: catalog.KindTemplate, Name: "WELCOME", ID: 9},
		{Kind: catalog.KindKey, Name: "checkout"},
		{Kind: catalog.KindWebhook, Name: "crm", UUID: catalog.DeriveWebhookUUID("crm")},
		{Kind: catalog.KindLogin, Name: "company", UUID: catalog.DeriveLoginUUID("company")},
		{Kind: catalog.KindInbound, Name: "ses", UUID: catalog.DeriveInboundUUID("ses")},
		{Kind: catalog.KindDefaults},
		{Kind: catalog.KindSealing},
	}
	if got := d.Refs(); !slices.Equal(got, want) {
		t.Errorf("Refs = %+v, want %+v", got, want)
	}
	if got := new(catalog.Declared).Refs(); got != nil {
		t.Errorf("Refs of nothing = %+v", got)
	}
}
