package hcledit_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// projectText is a project's block as a person would have written it, of about 1.4 kB with three domains.
func projectText(slug string, domains int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s: who to ask is in the wiki.\nproject %q {\n  name        = \"The shop of %s\"\n  description = \"Storefront and back office\"\n  status      = \"ACTIVE\"\n\n", slug, slug, slug)
	for i := range domains {
		fmt.Fprintf(&b, "  domain \"d%d.%s.example\" { primary = %v } # since 2024\n", i, slug, i == 0)
	}
	b.WriteString(`
  service_settings {
    auth_enabled         = true
    mail_enabled         = true
    sms_provider         = "none"
    audit_retention_days = 365
  }

  auth_settings {
    registration_mode           = "OPEN"
    email_verification_required = true
    jwt_secret                  = env("SHOP_JWT_SECRET")
    jwt_expires_in              = "15m"
    password_min_length         = 12 # the auditors asked for it
  }

  smtp_config {
    host        = "smtp.acme.example"
    port        = 587
    username    = "acme"
    password    = env("SHOP_SMTP_PASSWORD")
    from_email  = "hello@acme.example"
    from_name   = "Acme"
    tls_enabled = true
  }

  template "WELCOME" {
    name             = "Welcome"
    subject_template = "Welcome to {{projectName}}, {{userName}}"
    body_text        = <<-EOT
      Hello {{userName}},

      good to have you. If you did not ask for this, do nothing at all.
      Your friends at {{projectName}}
    EOT
  }
}
`)
	return b.String()
}

// manyProjects is a file with a thousand short projects.
func manyProjects() string {
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, "project \"p%d\" {\n  name   = \"Project number %d\"\n  status = \"ACTIVE\" # for now\n\n  domain \"p%d.example\" { primary = true }\n  domain \"*.p%d.example\" {}\n}\n\n", i, i, i, i)
	}
	return b.String()
}

// BenchmarkRewrite is what one write over the API costs without disk and store: reading the file, the edit, and the
// reading of the result that proves it.
func BenchmarkRewrite(b *testing.B) {
	for _, file := range []struct{ name, slug, text string }{
		{"domains=3", "acme", projectText("acme", 3)},
		{"domains=64", "acme", projectText("acme", 64)},
		{"projects=1000", "p500", manyProjects()},
	} {
		for _, edit := range []struct {
			name   string
			change func(p *catalog.ProjectConfig)
		}{
			{"attribute", func(p *catalog.ProjectConfig) { p.Project.Name = "Other" }},
			{"add-domain", func(p *catalog.ProjectConfig) {
				d := catalog.Domain{Name: "new.example", Active: true}
				d.UUID = catalog.DeriveDomainUUID(p.Project.UUID, d.Name)
				p.Domains = append(p.Domains, d)
			}},
			{"remove-domain", func(p *catalog.ProjectConfig) { p.Domains = p.Domains[1:] }},
			{"primary-moves", func(p *catalog.ProjectConfig) { p.Domains[0].Primary, p.Domains[1].Primary = false, true }},
		} {
			b.Run(file.name+"/"+edit.name, func(b *testing.B) {
				b.SetBytes(int64(len(file.text)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := rewrite([]byte(file.text), file.slug, edit.change); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// rewrite makes one change as configsrc does.
func rewrite(src []byte, slug string, change func(p *catalog.ProjectConfig)) ([]byte, error) {
	r, ds := hclfile.Decode("x.hcl", src, hclfile.Options{})
	if ds.HasErrors() {
		return nil, fmt.Errorf("before: %v", ds)
	}
	at := slices.IndexFunc(r.Declared.Projects, func(p catalog.ProjectConfig) bool { return p.Project.Slug == slug })
	old := r.Declared.Projects[at]
	want := old
	want.Domains = slices.Clone(old.Domains)
	change(&want)
	d := hcledit.NewDraft(r)
	if err := d.RewriteProject(&old, &want); err != nil {
		return nil, err
	}
	out, err := d.Bytes()
	if err != nil {
		return nil, err
	}
	if _, ds := hclfile.Decode("x.hcl", out, hclfile.Options{}); ds.HasErrors() {
		return nil, fmt.Errorf("after: %v", ds)
	}
	return out, nil
}

func BenchmarkSetAttribute(b *testing.B) {
	src, err := os.ReadFile("../hclfile/testdata/good/acme.hcl")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := hcledit.SetAttribute(src, hcledit.BlockPath{"project", "acme"}, "name", `"Other"`); err != nil {
			b.Fatal(err)
		}
	}
}
