package catalog_test

import (
	"reflect"
	"testing"

	"fingerpost/resolver/catalog"
)

func TestSMTPInForce(t *testing.T) {
	relay := catalog.SMTPConfig{Host: "relay.example", Port: 2525, Username: "u", Password: catalog.Secret{Source: catalog.SecretEnv, Ref: "P"},
		FromEmail: "relay@relay.example", FromName: "Relay", ReplyTo: "help@relay.example", TLSEnabled: true, Active: true, CAFile: "ca.pem"}
	u := catalog.NewUUID()
	f := func(what string, own *catalog.SMTPConfig, relay *catalog.SMTPConfig, want *catalog.SMTPConfig) {
		t.Helper()
		got := catalog.SMTPInForce(own, &catalog.Defaults{SMTP: relay})
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
		if got != nil && got == relay {
			t.Errorf("%s: the defaults block itself", what)
		}
	}
	full := &catalog.SMTPConfig{UUID: u, Host: "own.example", FromEmail: "a@own.example", Active: true}
	f("none at all", nil, nil, nil)
	f("own, no relay", full, nil, full)
	f("own inherits nothing, not even a password", full, &relay, full)
	f("own is off", &catalog.SMTPConfig{UUID: u, Host: "own.example"}, &relay, &catalog.SMTPConfig{UUID: u, Host: "own.example"})
	f("no block", nil, &relay, &relay)
	f("a sender, no relay", &catalog.SMTPConfig{UUID: u, FromEmail: "a@own.example", Active: true}, nil, nil)

	want := relay
	want.FromEmail = "a@own.example"
	f("a sender", &catalog.SMTPConfig{UUID: u, ID: 7, FromEmail: "a@own.example", Active: true}, &relay, &want)
	want.FromName, want.ReplyTo = "Own", "b@own.example"
	want.DKIMSelectors = []string{"s1"}
	f("a whole sender with keys", &catalog.SMTPConfig{UUID: u, FromEmail: "a@own.example", FromName: "Own", ReplyTo: "b@own.example", Active: true,
		DKIMSelectors: []string{"s1"}}, &relay, &want)
	want.DKIMSelectors = nil
	f("a whole sender", &catalog.SMTPConfig{UUID: u, FromEmail: "a@own.example", FromName: "Own", ReplyTo: "b@own.example", Active: true}, &relay, &want)
	want = relay
	want.Active = false
	f("off for one project", &catalog.SMTPConfig{UUID: u}, &relay, &want)
	off := want
	f("off for all", &catalog.SMTPConfig{UUID: u, Active: true}, &off, &want)

	nobody := relay
	nobody.FromEmail = ""
	f("no sender", nil, &nobody, nil)
	f("a name only", &catalog.SMTPConfig{UUID: u, FromName: "Own", Active: true}, &nobody, nil)
	want = relay
	want.FromEmail = "a@own.example"
	f("the sender is the project's", &catalog.SMTPConfig{UUID: u, FromEmail: "a@own.example", Active: true}, &nobody, &want)
	if catalog.SMTPInForce(nil, nil) != nil || catalog.SMTPInForce(full, nil) != full {
		t.Error("without a defaults block, the project's own")
	}
}

// TestSecretContext: no project, whatever its uuid lines say, has the context of the defaults block.
func TestSecretContext(t *testing.T) {
	project := catalog.NewUUID()
	own := catalog.SMTPConfig{UUID: catalog.NewUUID(), Host: "own.example"}
	if got := own.SecretContext(project, "password"); got != project.String()+"/password" {
		t.Error(got)
	}
	relay := catalog.SMTPInForce(nil, &catalog.Defaults{SMTP: &catalog.SMTPConfig{Host: "relay.example", FromEmail: "a@b.example"}})
	if got := relay.SecretContext(project, "password"); got != "defaults/password" {
		t.Error(got)
	}
	if u, err := catalog.ParseUUID("00000000-0000-0000-0000-000000000000"); err == nil {
		t.Errorf("a block can have the uuid %s, and its secrets would have the context of the defaults block", u)
	}
	if u, err := catalog.ParseUUID("defaults"); err == nil {
		t.Errorf("a project can have the uuid %s", u)
	}
}
