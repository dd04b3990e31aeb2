package hcledit_test

import (
	"testing"

	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// The subject of a commit names the fields that a write has changed; a switch or a number with its value, never a
// secret's.
func TestSubject(t *testing.T) {
	t.Parallel()
	declared := func(text string) *catalog.Declared {
		r, ds := hclfile.Decode("a.hcl", []byte(text), hclfile.Options{})
		if ds.HasErrors() {
			t.Fatal(ds)
		}
		return r.Declared
	}
	in := func(text string) string { return "project \"acme\" {\n  name = \"A\"\n" + text + "}\n" }
	smtp := func(text string) string {
		return in("smtp_config {\nhost = \"a.example\"\nfrom_email = \"a@b.example\"\n" + text + "}\n")
	}
	for _, c := range []struct{ was, is, want string }{
		{in(""), in("auth_settings {\ntwo_factor_required = true\n}\n"), "acme: two_factor_required = true"},
		{in(""), in("description = \"d\"\nservice_settings {\nmail_enabled = true\naudit_retention_days = 30\n}\n"),
			"acme: description, mail_enabled = true, audit_retention_days = 30"},
		{in(""), in("auth_settings {\nregistration_mode = \"INVITE_ONLY\"\n}\n"), "acme: registration_mode, invite_only = true"},
		{in(""), in("auth_settings {\njwt_secret = env(\"X\")\n}\n"), "acme: jwt_secret"},
		{in(""), in("auth_settings {\ntwo_factor_required = true\nsession_timeout = 60\njwt_expires_in = \"1m\"\njwt_enabled = false\n}\n"), "acme: auth_settings"},
		{smtp(""), smtp("port = 2525\npassword = env(\"X\")\nusername = \"u\"\n"), "acme: smtp_config port = 2525, smtp_config username, smtp_config password"},
		{in(""), smtp(""), "acme: + smtp_config"},
		{in(""), in("domain \"x.example\" {}\n"), "acme: + domain x.example"},
	} {
		if got := hcledit.Subject(declared(c.was), declared(c.is)); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
