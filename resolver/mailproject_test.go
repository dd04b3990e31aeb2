package resolver_test

import (
	"testing"

	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

func TestMailProject(t *testing.T) {
	t.Parallel()
	r := open(t, resolver.Options{})
	acme, off, held := block("acme", "acme.example", "*.acme.example"), block("off", "off.example"), block("held", "held.example")
	acme.SMTP = &catalog.SMTPConfig{Host: "smtp.acme.example", FromEmail: "hello@acme.example"}
	off.Domains[0].Active = false
	held.Project.Status = catalog.StatusSuspended
	defaults := catalog.NewServiceSettings()
	defaults.MailEnabled = true
	defaults.Said = defaults.Said.With(1) // mailEnabled
	f := file("a.hcl", acme, off, held)
	f.Declared.Defaults = &catalog.Defaults{Service: &defaults}
	apply(t, r, f)

	for domain, want := range map[string]any{
		"Acme.Example.:8443": acme.Project.ID, "a.b.acme.example": acme.Project.ID,
		"off.example": catalog.CodeDomainNotVerified, "held.example": catalog.CodeProjectSuspended,
		"nobody.example": catalog.CodeNotFound, "no domain": catalog.CodeValidation,
	} {
		id, err := r.ProjectOfDomain(domain)
		got := any(id)
		if err != nil {
			got = code(err)
		}
		if got != want {
			t.Errorf("%s: %v, want %v", domain, got, want)
		}
	}
	p, err := r.MailProject(acme.Project.ID)
	if err != nil || p.SMTP == nil || p.SMTP.Host != "smtp.acme.example" || p.Project.Slug != "acme" {
		t.Fatalf("%+v, %v", p, err)
	}
	if !p.Service.MailEnabled {
		t.Error("the defaults block is not in force")
	}
	if p, err := r.MailProject(held.Project.ID); err != nil || p.SMTP != nil || p.Project.Status != catalog.StatusSuspended {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := r.MailProject(7); code(err) != catalog.CodeNotFound {
		t.Error(err)
	}
}

func TestMailTemplate(t *testing.T) {
	t.Parallel()
	r := open(t, resolver.Options{})
	acme := block("acme")
	declare := func(owner catalog.UUID, project int64, code string, active bool) catalog.Template {
		u := catalog.DeriveTemplateUUID(owner, code)
		return catalog.Template{
			ID: catalog.DeriveID(catalog.KindTemplate, u), UUID: u, ProjectID: project, Code: code, Name: code, Active: active,
			SubjectTemplate: "s", BodyText: "b",
		}
	}
	own := func(code string, active bool) catalog.Template {
		return declare(acme.Project.UUID, acme.Project.ID, code, active)
	}
	base := func(code string, active bool) catalog.Template { return declare(catalog.UUID{}, 0, code, active) }
	acme.Templates = []catalog.Template{own("BOTH", true), own("OWN", true), own("OWN_OFF", false), own("FALLS_BACK", false), own("ALL_OFF", false)}
	f := file("a.hcl", acme)
	f.Declared.Templates = []catalog.Template{base("BOTH", true), base("BASE", true), base("FALLS_BACK", true), base("ALL_OFF", false), base("BASE_OFF", false)}
	apply(t, r, f)
	for name, want := range map[string]any{
		"BOTH": acme.Project.ID, "OWN": acme.Project.ID, "BASE": int64(0), "FALLS_BACK": int64(0),
		"OWN_OFF": catalog.CodeTemplateInactive, "ALL_OFF": catalog.CodeTemplateInactive, "BASE_OFF": catalog.CodeTemplateInactive,
		"NONE": catalog.CodeNotFound, "": catalog.CodeNotFound,
	} {
		tpl, err := r.MailTemplate(acme.Project.ID, name)
		var got any = code(err)
		if err == nil {
			got = tpl.ProjectID
		}
		if got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// TestMailProjectFollows: a cached project is never older than an applied change, and callers cannot change it.
func TestMailProjectFollows(t *testing.T) {
	t.Parallel()
	r := open(t, resolver.Options{})
	acme, other := block("acme", "acme.example"), block("other", "other.example")
	acme.SMTP = &catalog.SMTPConfig{FromEmail: "hello@acme.example"}
	defaults := catalog.NewServiceSettings()
	defaults.Said = defaults.Said.With(1) // mailEnabled
	read := func() *catalog.ProjectConfig {
		t.Helper()
		p, err := r.MailProject(acme.Project.ID)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for i := range 20 {
		acme.SMTP.Host = "smtp" + string(rune('a'+i)) + ".acme.example"
		defaults.MailEnabled = i%2 == 0
		own := defaults
		f := file("a.hcl", acme, other)
		f.Declared.Defaults = &catalog.Defaults{Service: &own}
		apply(t, r, f)
		for range 3 {
			p := read()
			if p.SMTP.Host != acme.SMTP.Host || p.Service.MailEnabled != defaults.MailEnabled {
				t.Fatalf("change %d: host %s, mail %v", i, p.SMTP.Host, p.Service.MailEnabled)
			}
			p.SMTP.Host, p.Project.Slug = "changed.example", "changed"
		}
	}
	if p, err := r.MailProject(other.Project.ID); err != nil || p.Project.Slug != "other" || p.SMTP != nil {
		t.Errorf("%+v, %v", p, err)
	}
	apply(t, r, file("a.hcl", other))
	if p, err := r.MailProject(acme.Project.ID); code(err) != catalog.CodeNotFound {
		t.Errorf("%+v, %v", p, err)
	}
}
