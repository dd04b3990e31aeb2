package resolver_test

import (
	"strings"
	"testing"

	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// TestRelay: the next answer after a change of the defaults block tells of it, in the mailer's view and in the flat form.
func TestRelay(t *testing.T) {
	t.Parallel()
	r := open(t, resolver.Options{})
	plain, sender, own := block("plain", "plain.example"), block("sender", "sender.example"), block("own", "own.example")
	uuid := catalog.NewUUID()
	sender.SMTP = &catalog.SMTPConfig{UUID: uuid, FromEmail: "hello@sender.example", Active: true}
	own.SMTP = &catalog.SMTPConfig{UUID: uuid, Host: "smtp.own.example", FromEmail: "hello@own.example", Active: true}
	check := func(p catalog.ProjectConfig, host, from string) {
		t.Helper()
		got, err := r.MailProject(p.Project.ID)
		if err != nil {
			t.Fatal(err)
		}
		if (got.SMTP == nil) != (host == "") || got.SMTP != nil && (got.SMTP.Host != host || got.SMTP.FromEmail != from) {
			t.Errorf("%s sends by %+v", p.Project.Slug, got.SMTP)
		}
		want := `"mailProvider":null,"mailFromAddress":null,`
		if host != "" {
			want = `"mailProvider":"SMTP","mailFromAddress":"` + from + `",`
		}
		if a := resolve(t, r, p.Domains[0].Name, resolver.Flat); !strings.Contains(string(a.Data), want) {
			t.Errorf("%s: %s", p.Project.Slug, a.Data)
		}
	}
	set := func(d *catalog.Defaults) {
		f := file("defaults.hcl")
		f.Declared.Defaults = d
		apply(t, r, f)
	}
	apply(t, r, file("a.hcl", plain, sender, own))
	check(plain, "", "")
	check(sender, "", "")
	check(own, "smtp.own.example", "hello@own.example")
	if _, err := r.SMTPConfig(sender.Project.ID); code(err) != catalog.CodeNotFound {
		t.Errorf("a sender alone is no SMTP config of its own: %v", err)
	}

	set(&catalog.Defaults{SMTP: &catalog.SMTPConfig{Host: "relay.example", Active: true}})
	check(plain, "", "")
	check(sender, "relay.example", "hello@sender.example")
	check(own, "smtp.own.example", "hello@own.example")

	set(&catalog.Defaults{SMTP: &catalog.SMTPConfig{Host: "relay2.example", FromEmail: "mail@relay.example", Active: true}})
	check(plain, "relay2.example", "mail@relay.example")
	check(sender, "relay2.example", "hello@sender.example")
	check(own, "smtp.own.example", "hello@own.example")
	if _, err := r.SMTPConfig(plain.Project.ID); code(err) != catalog.CodeNotFound {
		t.Errorf("the relay shows as a project's own: %v", err)
	}

	set(&catalog.Defaults{})
	check(plain, "", "")
	check(sender, "", "")
}
