package hcledit_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// author makes up projects of all that a file can say.
type author struct{ *rand.Rand }

func (a author) pick(options ...string) string { return options[a.IntN(len(options))] }

func (a author) flip() bool { return a.IntN(2) == 0 }

func (a author) line() string {
	return a.pick("x", `a "b" \ c`, "${x} %{y} $${z}", "# no comment", "EOT", "ü 日本 \u202e", "tab\there", "{}", "  padded  ")
}

func (a author) text() string {
	return a.pick("one", "one\ntwo\n", "one\n\n  two", "\nlead", " a\n b\n", "EOT\nEOT2\n", "${a}\n%{b}\n", "cr\r\nlf\r\n",
		"   \nblank\n   ", "\t\n\ttabs\n", "tail\n\n\n", "a\n\n\n\nb\n", "  deep\n    deeper\n  deep", "\u2028\n", a.line()+"\n"+a.line())
}

func (a author) project() *catalog.ProjectConfig {
	p := &catalog.ProjectConfig{Service: catalog.NewServiceSettings(), Auth: catalog.NewAuthSettings()}
	p.Project = catalog.Project{Slug: a.pick("acme", "a-1"), Name: a.pick("Acme", `"q" ${x}`, "ü"), Status: a.pick(catalog.Statuses...)}
	if a.flip() {
		text := a.text()
		p.Project.Description = &text
	}
	p.Project.Labels = a.labels()
	p.Project.UUID, p.Project.ID = a.identity(catalog.KindProject, catalog.DeriveProjectUUID(p.Project.Slug))
	for _, name := range []string{"a.example", "*.a.example", "xn--bcher-kva.example"}[:a.IntN(4)] {
		d := catalog.Domain{Name: name, ProjectID: p.Project.ID, Active: a.flip(), Primary: name == "a.example" && a.flip()}
		if yes := a.flip(); a.flip() {
			d.Certificates = &yes
		}
		d.UUID, d.ID = a.identity(catalog.KindDomain, catalog.DeriveDomainUUID(p.Project.UUID, name))
		p.Domains = append(p.Domains, d)
	}
	for _, fields := range [][]catalog.Field{p.Service.Fields(), p.Auth.Fields()} {
		a.fill(fields)
	}
	p.Auth.Rules = a.rules()
	if a.flip() {
		p.SMTP = &catalog.SMTPConfig{Host: "smtp.example", FromEmail: "a@b.example", Username: "u", FromName: a.pick("", "A \"b\""),
			Port: a.IntN(2) * 25, Active: a.flip(), TLSEnabled: a.flip()}
		p.SMTP.Password = []catalog.Secret{{}, {Source: catalog.SecretEnv, Ref: "X"}, {Source: catalog.SecretFile, Ref: "x.txt"}}[a.IntN(3)]
	}
	for _, code := range []string{"WELCOME", "x.y"}[:a.IntN(3)] {
		t := a.template(code, p.Project.UUID)
		t.ProjectID = p.Project.ID
		p.Templates = append(p.Templates, t)
	}
	return p
}

func (a author) labels() (labels []catalog.Label) {
	for _, name := range []string{"for", "plan", "shard", "true"} {
		if a.flip() {
			labels = append(labels, catalog.Label{Name: name, Value: a.pick("", "gold", "${x} %{y}", `"q" \`, strings.Repeat("ü", 100))})
		}
	}
	return labels
}

func (a author) template(code string, project catalog.UUID) catalog.Template {
	t := catalog.Template{Code: code, Name: "N", SubjectTemplate: "Hello {{x}}", BodyText: a.text(), BodyHTML: a.pick("", a.text()), Active: a.flip()}
	for _, tag := range []string{"de", "pt-BR"}[:a.IntN(3)] {
		t.Locales = append(t.Locales, catalog.Locale{Tag: tag, SubjectTemplate: a.pick("Hallo {{x}}", "{{#if x}}a{{/if}}b"), BodyText: a.text(),
			BodyHTML: a.pick("", a.text())})
	}
	t.UUID, t.ID = a.identity(catalog.KindTemplate, catalog.DeriveTemplateUUID(project, code))
	return t
}

func (a author) identity(kind catalog.Kind, derived catalog.UUID) (catalog.UUID, int64) {
	u := derived
	if a.flip() {
		u = catalog.NewUUID()
	}
	if a.flip() {
		return u, 1 + int64(a.IntN(catalog.MaxDeclaredID))
	}
	return u, catalog.DeriveID(kind, u)
}

func (a author) rules() catalog.TokenRules {
	url, issuer := "https://login.acme.example/jwks?${x}", a.pick("https://login.acme.example/", `"q" ${x}`)
	r := []catalog.TokenRules{catalog.NewTokenRules(), {Algorithms: []string{"ES256", "HS256"}, Keys: []string{catalog.FileText("keys/${x}.pem")}},
		{Algorithms: []string{"RS256"}, KeySetURL: &url}}[a.IntN(3)]
	if a.flip() {
		r.Issuer, r.Audience = &issuer, &issuer
	}
	return r
}

func (a author) fill(fields []catalog.Field) {
	for _, f := range fields {
		switch v := f.Value.(type) {
		case *bool:
			*v = a.flip()
		case *int:
			*v = 1 + a.IntN(60)
		case *string:
			if f.OneOf != nil {
				*v = a.pick(f.OneOf...)
			}
		case **string:
			if word := "none"; a.flip() {
				*v = &word
			}
		case *catalog.Secret:
			if a.flip() {
				*v = catalog.Secret{Source: catalog.SecretEnv, Ref: "ACME_JWT_SECRET"}
			}
		}
	}
}

// TestWriteProject writes many projects. That a file says what was meant is checked by WriteProject itself; that it never
// refuses, and that what it writes is in canonical form, is checked here.
func TestWriteProject(t *testing.T) {
	a := author{rand.New(rand.NewPCG(7, 8))}
	for i := range rounds(t, 500) {
		p := a.project()
		var defaults *catalog.Defaults
		if a.flip() {
			auth, service := catalog.NewAuthSettings(), catalog.NewServiceSettings()
			a.fill(auth.Fields())
			a.fill(service.Fields())
			auth.Said, service.Said = catalog.FieldSet(a.Uint32()), catalog.FieldSet(a.Uint32())
			auth.Token.JWTSecret, auth.Rules = catalog.Secret{}, a.rules()
			if together := auth.Said.Has(15); together != auth.Said.Has(16) || together != auth.Said.Has(17) {
				auth.Said |= 7 << 15 // as the decoder does
			}
			defaults = &catalog.Defaults{Auth: &auth, Service: &service}
		}
		out, err := hcledit.WriteProject(p, defaults)
		if err != nil {
			t.Fatalf("%d: %v\n%+v", i, err, p)
		}
		canonical(t, out)
		ts := []catalog.Template{a.template("A", catalog.UUID{}), a.template("B", catalog.UUID{})}
		if out, err = hcledit.WriteTemplates(ts); err != nil {
			t.Fatalf("%d: %v\n%+v", i, err, ts)
		}
		canonical(t, out)
	}
}

func canonical(t *testing.T, out []byte) {
	t.Helper()
	again, ds := hclfile.Format(out)
	if ds.HasErrors() || !bytes.Equal(again, out) {
		t.Fatalf("the formatter makes\n%s\nof\n%s", again, out)
	}
}

// TestWriteProjectByHand holds what a person would expect to see.
func TestWriteProjectByHand(t *testing.T) {
	p := &catalog.ProjectConfig{Service: catalog.NewServiceSettings(), Auth: catalog.NewAuthSettings()}
	p.Project = catalog.Project{Slug: "acme", Name: "Acme Shop", Status: "ACTIVE", ID: 7, UUID: catalog.DeriveProjectUUID("acme")}
	u := catalog.DeriveDomainUUID(p.Project.UUID, "shop.example")
	p.Domains = []catalog.Domain{{Name: "shop.example", UUID: u, ID: catalog.DeriveID(catalog.KindDomain, u), Active: true, Primary: true}}
	p.Service.MailEnabled = true
	p.Auth.RegistrationMode, p.Auth.InviteOnly = "INVITE_ONLY", true
	w := catalog.Template{Code: "WELCOME", Name: "Welcome", SubjectTemplate: "Hi", BodyText: "Hello {{userName}},\n\ngood day.\n", Active: true,
		UUID: catalog.DeriveTemplateUUID(p.Project.UUID, "WELCOME")}
	w.ID = catalog.DeriveID(catalog.KindTemplate, w.UUID)
	p.Templates = []catalog.Template{w}
	out, err := hcledit.WriteProject(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `project "acme" {
  name   = "Acme Shop"
  status = "ACTIVE"
  id     = 7

  domain "shop.example" { primary = true }

  service_settings {
    mail_enabled = true
  }

  auth_settings {
    registration_mode = "INVITE_ONLY"
  }

  template "WELCOME" {
    name             = "Welcome"
    subject_template = "Hi"
    body_text        = <<-EOT
      Hello {{userName}},

      good day.
    EOT
  }
}
`
	if string(out) != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
	p.Project.Name = "a\xffb"
	if _, err := hcledit.WriteProject(p, nil); !errors.Is(err, hcledit.ErrVerify) {
		t.Errorf("a text that a file gives back otherwise: %v", err)
	}
}
