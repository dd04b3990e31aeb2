package transfer

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"fingerpost/api/client"
	"fingerpost/resolver/catalog"
)

func declared(slug string, uuid catalog.UUID) *catalog.ProjectConfig {
	p := &catalog.ProjectConfig{Service: catalog.NewServiceSettings(), Auth: catalog.NewAuthSettings()}
	p.Project = catalog.Project{Slug: slug, UUID: uuid, Name: slug, Status: catalog.StatusDraft, ID: catalog.DeriveID(catalog.KindProject, uuid)}
	return p
}

// TestPairUp: a uuid goes before a slug, whatever order they come in.
func TestPairUp(t *testing.T) {
	one, two, three := catalog.NewUUID(), catalog.NewUUID(), catalog.NewUUID()
	wants := []*catalog.ProjectConfig{declared("b", one), declared("a", two), declared("c", catalog.DeriveProjectUUID("c"))}
	haves := []catalog.Project{{Slug: "b", UUID: three, ID: 1}, {Slug: "a", UUID: one, ID: 2}, {Slug: "c", UUID: catalog.NewUUID(), ID: 3}, {Slug: "d", ID: 4}}
	var got []string
	for _, p := range pairUp(haves, wants) {
		have, want := "-", "-"
		if p.have != nil {
			have = p.have.Slug
		}
		if p.want != nil {
			want = p.want.Project.Slug
		}
		got = append(got, have+want)
	}
	// No project was renamed to b of the server: its slug goes to the project that was a.
	if want := []string{"-a", "ab", "b-", "cc", "d-"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestChangesText holds how changes look, and that no secret does.
func TestChangesText(t *testing.T) {
	uuid := catalog.DeriveProjectUUID("acme")
	have, want := declared("acme", uuid), declared("acme", uuid)
	text := "new \x1b[31m text"
	want.Project.Name, want.Project.Description = "Acme \u202e", &text
	have.Auth.Token.JWTSecret = catalog.Secret{Source: catalog.SecretPlain, Ref: "sentinel-one"}
	want.Auth.Token.JWTSecret = catalog.Secret{Source: catalog.SecretPlain, Ref: "sentinel-two"}
	want.Service.AuditRetentionDays = 7
	want.SMTP = &catalog.SMTPConfig{Host: "smtp.example", Port: 25, Active: true, Password: catalog.Secret{Source: catalog.SecretEnv, Ref: "sentinel"}}
	have.Templates = []catalog.Template{{Code: "A", BodyText: "one\ntwo\n", BodyHTML: strings.Repeat("x", 200)}, {Code: "B"}}
	want.Templates = []catalog.Template{{Code: "A", BodyText: "one\ntwo\nthree\n", BodyHTML: strings.Repeat("x", 199)}}
	changes, _ := compareProject(&client.Project{ProjectConfig: *have, Mail: true}, want, everything)
	auth := catalog.NewAuthSettings()
	auth.Password.MinLength, auth.Said = 8, catalog.FieldSet(0).With(12)
	rest, _ := compareRest(
		&catalog.Declared{Sealing: &catalog.Sealing{Require: true},
			Keys: []catalog.Key{{Name: "k", ID: "abcdef", Hash: [32]byte{1}, Allow: catalog.MayRead}}},
		&catalog.Declared{Sealing: &catalog.Sealing{Recipients: []string{"age1x"}, Require: true}, Defaults: &catalog.Defaults{Auth: &auth},
			Keys: []catalog.Key{{Name: "k", ID: "abcdef", Hash: [32]byte{2}, Allow: catalog.MayRead | catalog.MayWrite, Projects: []string{"acme"}}}},
		everything)
	changes = append(changes, rest...)
	var b strings.Builder
	if err := WriteChanges(&b, changes, false); err != nil {
		t.Fatal(err)
	}
	wantText := `  project "acme"
    ~ name: "acme" → "Acme \u202e"
    ~ description: none → "new \u001b[31m text"
    ~ service_settings
        ~ audit_retention_days: 90 → 7
    ~ auth_settings
        ~ jwt_secret: changed (secret)
    + smtp_config
        host = "smtp.example"
        port = 25
        password = (secret)
    ~ template "A"
        ~ body_html: "` + strings.Repeat("x", 80) + `"… (200 bytes) → "` + strings.Repeat("x", 80) + `"… (199 bytes)
        ~ body_text: (2 lines, 8 bytes) → (3 lines, 14 bytes)
    - template "B"
+ defaults
    auth_settings.password_min_length = 8
~ key "k"
    ~ hash: changed (secret)
    ~ allow: "read" → "read, write"
    ~ projects: none → "acme"
~ sealing
    ~ recipients: none → "age1x"
`
	if b.String() != wantText {
		t.Errorf("got\n%s\nwant\n%s", b.String(), wantText)
	}
	doc, err := json.Marshal(changes)
	if err != nil || strings.Contains(string(doc), "sentinel") {
		t.Errorf("%v %s", err, doc)
	}
	b.Reset()
	if err := WriteChanges(&b, changes[:1], true); err != nil || strings.Count(b.String(), "\x1b[33m~") != 2 || strings.Count(b.String(), colourOff) != 2 {
		t.Errorf("colours: %q %v", b.String(), err)
	}
}

// TestRenumbered counts what has another identity where that is not compared, and shows it where it is.
func TestRenumbered(t *testing.T) {
	have, want := declared("acme", catalog.NewUUID()), declared("acme", catalog.NewUUID())
	have.Domains = []catalog.Domain{{ID: 5, Name: "a.example", Active: true}}
	want.Domains = []catalog.Domain{{ID: 6, Name: "a.example", Active: true}}
	f := &client.Project{ProjectConfig: *have}
	changes, n := compareProject(f, want, seenBy(f, false))
	if len(changes) != 0 || n != 2 {
		t.Errorf("%+v, %d renumbered", changes, n)
	}
	if changes, n = compareProject(f, want, seenBy(f, true)); len(changes) != 2 || n != 0 || changes[1].Fields[0].New != int64(6) {
		t.Errorf("%+v, %d renumbered", changes, n)
	}
}

// TestCompareRelay: the relay of the defaults block is compared field by field, its password as a secret; an API, which
// has no SMTP config without a host, is not told of a project's sender.
func TestCompareRelay(t *testing.T) {
	relay := func(host, password string, active bool) *catalog.Defaults {
		return &catalog.Defaults{SMTP: &catalog.SMTPConfig{Host: host, Username: "u", Active: active,
			Password: catalog.Secret{Source: catalog.SecretPlain, Ref: password}}}
	}
	show := func(changes []Change) string {
		var b strings.Builder
		if err := WriteChanges(&b, changes, false); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	f := func(have, want *catalog.Defaults, text string) {
		t.Helper()
		changes, _ := compareRest(&catalog.Declared{Defaults: have}, &catalog.Declared{Defaults: want}, everything)
		if got := show(changes); got != text {
			t.Errorf("got\n%swant\n%s", got, text)
		}
	}
	f(relay("a", "sentinel", true), relay("a", "sentinel", true), "")
	f(relay("a", "sentinel", true), relay("b", "sentinel-two", false), `~ defaults
    ~ smtp_config.host: "a" → "b"
    ~ smtp_config.password: changed (secret)
    ~ smtp_config.active: none → false
`)
	f(&catalog.Defaults{}, relay("a", "sentinel", true), `~ defaults
    ~ smtp_config.host: none → "a"
    ~ smtp_config.username: none → "u"
    ~ smtp_config.password: changed (secret)
`)
	sender := declared("acme", catalog.DeriveProjectUUID("acme"))
	sender.SMTP = &catalog.SMTPConfig{UUID: catalog.NewUUID(), FromEmail: "a@b.example", Active: true}
	have := &client.Project{ProjectConfig: *declared("acme", catalog.DeriveProjectUUID("acme")), Mail: true}
	if changes, _ := compareProject(have, sender, view{}); len(changes) > 0 {
		t.Errorf("over an API: %s", show(changes))
	}
	if changes, _ := compareProject(have, sender, everything); len(changes) != 1 || changes[0].Kind != catalog.KindSMTPConfig {
		t.Errorf("in the store: %s", show(changes))
	}
}
