package hclfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// mail is the folder that fixtures take template bodies from.
func mail(path string) ([]byte, error) {
	switch path {
	case "mail/welcome.html":
		return []byte("<p>Hello {{userName}}</p>\r\n"), nil
	case "mail/broken.html":
		return []byte("<p>Hello {{user name}}</p>\n"), nil
	case "mail/latin1.html":
		return []byte("Gr\xfc\xdfe"), nil
	}
	return nil, fs.ErrNotExist
}

// marker is how a fixture names a problem: "# ERROR: part of its text" on its line, or "# ERROR@+2: …" that many lines
// off. Several may follow each other on one line.
var marker = regexp.MustCompile(`# (ERROR|WARNING)(?:@([+-]\d+))?: (.*?)\s*(?:$|# (?:ERROR|WARNING))`)

type expectation struct {
	line     int
	severity hclfile.Severity
	text     string
}

func expectations(src string) (want []expectation) {
	for i, line := range strings.Split(src, "\n") {
		for {
			m := marker.FindStringSubmatchIndex(line)
			if m == nil {
				break
			}
			e := expectation{i + 1, hclfile.Error, line[m[6]:m[7]]}
			if line[m[2]:m[3]] == "WARNING" {
				e.severity = hclfile.Warning
			}
			if m[4] >= 0 {
				off, _ := strconv.Atoi(line[m[4]:m[5]])
				e.line += off
			}
			want = append(want, e)
			line = line[m[7]:]
		}
	}
	return want
}

// rules are those of a service that allows http to one network.
var rules = hclfile.Rules{Today: "2026-11-27",
	Allow: catalog.Allows{Webhooks: &catalog.HTTPAllow{Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
		KeySets: &catalog.HTTPAllow{Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
		Logins:  &catalog.HTTPAllow{Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}}}

// TestFixtures decodes every file in testdata/bad and testdata/good and compares its problems with those that the file announces. A file
// in good announces no errors. Adding a case is adding a file.
func TestFixtures(t *testing.T) {
	files, err := filepath.Glob("testdata/[bg]*/*.hcl")
	if err != nil || len(files) < 20 {
		t.Fatalf("found %d fixtures: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".hcl"), func(t *testing.T) {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			res, got := hclfile.Decode(file, src, hclfile.Options{ReadFile: mail, Rules: rules})
			checkRanges(t, src, got)
			want := expectations(string(src))
			if good := strings.Contains(file, "/good/"); good == got.HasErrors() {
				t.Errorf("HasErrors is %v", got.HasErrors())
			}
		next:
			for _, d := range got {
				for i, w := range want {
					if w.line == d.Start.Line && w.severity == d.Severity && strings.Contains(d.Summary+"\n"+d.Detail, w.text) {
						want = append(want[:i:i], want[i+1:]...)
						continue next
					}
				}
				t.Errorf("not announced: %s", text(hclfile.Diagnostics{d}))
			}
			for _, w := range want {
				t.Errorf("%s:%d: missing %s: %s", file, w.line, w.severity, w.text)
			}
			again, ds := hclfile.Decode(file, src, hclfile.Options{ReadFile: mail, Rules: rules})
			if !reflect.DeepEqual(res.Declared, again.Declared) || !reflect.DeepEqual(got, ds) {
				t.Error("decoding twice gives two results")
			}
		})
	}
}

// An empty file is served, as one that declares nothing, and is mostly a mistake. One with a comment is not empty.
func TestEmptyFile(t *testing.T) {
	for src, want := range map[string]int{"": 1, " \n\t\r\n": 1, "# nothing yet\n": 0} {
		res, ds := hclfile.Decode("a.hcl", []byte(src), hclfile.Options{})
		if len(ds) != want || ds.HasErrors() || want > 0 && ds[0].Summary != "the file is empty" || len(res.Declared.Projects) > 0 {
			t.Errorf("%q: %s", src, text(ds))
		}
	}
}

func text(ds hclfile.Diagnostics) string {
	var b strings.Builder
	if err := ds.WriteText(&b, false); err != nil {
		panic(err)
	}
	return b.String()
}

// checkRanges asserts what every diagnostic promises.
func checkRanges(t *testing.T, src []byte, ds hclfile.Diagnostics) {
	t.Helper()
	if len(ds) > 101 {
		t.Errorf("%d diagnostics", len(ds))
	}
	for i, d := range ds {
		if d.Start.Byte < 0 || d.End.Byte < d.Start.Byte || d.End.Byte > len(src) {
			t.Errorf("range %d-%d in %d bytes: %s", d.Start.Byte, d.End.Byte, len(src), d.Summary)
		}
		if d.Start.Line > 0 && (d.Start.Column < 1 || bytes.Count(src[:d.Start.Byte], []byte{'\n'})+1 != d.Start.Line) {
			t.Errorf("line %d, column %d for byte %d: %s", d.Start.Line, d.Start.Column, d.Start.Byte, d.Summary)
		}
		if len(d.Snippet) > 4000 || len(d.Summary) > 1000 || len(d.Detail) > 2000 {
			t.Errorf("too long: %d, %d, %d bytes", len(d.Snippet), len(d.Summary), len(d.Detail))
		}
		if s := d.Snippet + d.Summary; strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			t.Errorf("control characters in %q", s)
		}
		if i > 0 && d.Start.Byte < ds[i-1].Start.Byte && ds[i-1].Summary != "" && i < 100 {
			t.Errorf("not sorted: %s", d.Summary)
		}
	}
}

func readGood(t testing.TB, name string) (*hclfile.Result, []byte) {
	t.Helper()
	src, err := os.ReadFile("testdata/good/" + name)
	if err != nil {
		t.Fatal(err)
	}
	r, ds := hclfile.Decode(name, src, hclfile.Options{ReadFile: mail})
	if ds.HasErrors() {
		t.Fatal(text(ds))
	}
	return r, src
}

// TestDecodeExample reads an example of every block and compares every value.
func TestDecodeExample(t *testing.T) {
	r, _ := readGood(t, "acme.hcl")
	d := r.Declared
	if len(d.Projects) != 1 || len(d.Templates) != 1 || len(d.Keys) != 1 {
		t.Fatalf("%d projects, %d templates, %d keys", len(d.Projects), len(d.Templates), len(d.Keys))
	}
	p := d.Projects[0]
	uuid := catalog.DeriveProjectUUID("acme")
	id := catalog.DeriveID(catalog.KindProject, uuid)
	description := "Storefront and back office"
	check := func(what string, got, want any) {
		t.Helper()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", what, got, want)
		}
	}
	check("project", p.Project, catalog.Project{ID: id, UUID: uuid, Name: "Acme Shop", Slug: "acme", Description: &description, Status: "ACTIVE"})
	domain := func(name string, primary, active bool) catalog.Domain {
		u := catalog.DeriveDomainUUID(uuid, name)
		return catalog.Domain{ID: catalog.DeriveID(catalog.KindDomain, u), UUID: u, ProjectID: id, Name: name, Primary: primary, Active: active}
	}
	check("domains", p.Domains, []catalog.Domain{domain("shop.acme.example", true, true), domain("*.acme.example", false, true), domain("old.acme.example", false, false)})

	none := "none"
	u := catalog.DeriveUUID(catalog.KindServiceSettings, uuid)
	check("service", p.Service, catalog.ServiceSettings{ID: catalog.DeriveID(catalog.KindServiceSettings, u), UUID: u, AuthEnabled: true, MailEnabled: true,
		SMSProvider: &none, AuditRetentionDays: 365, Said: catalog.FieldSet(0).With(0).With(1).With(4).With(5)})

	u = catalog.DeriveUUID(catalog.KindAuthSettings, uuid)
	auth := catalog.NewAuthSettings()
	auth.ID, auth.UUID = catalog.DeriveID(catalog.KindAuthSettings, u), u
	auth.RegistrationMode, auth.EmailVerificationRequired, auth.ApprovalRequired = "APPROVAL_REQUIRED", true, true
	auth.Token.JWTSecret = catalog.Secret{Source: catalog.SecretSealed, Ref: "YWdlLWVuY3J5cHRpb24ub3JnL3Yx"}
	auth.Password.MinLength = 12
	for _, i := range []int{0, 1, 3, 4, 7, 8, 12} {
		auth.Said = auth.Said.With(i)
	}
	check("auth", p.Auth, auth)

	u = catalog.DeriveUUID(catalog.KindSMTPConfig, uuid)
	check("smtp", *p.SMTP, catalog.SMTPConfig{ID: catalog.DeriveID(catalog.KindSMTPConfig, u), UUID: u, Host: "smtp.acme.example", Port: 587, Username: "acme",
		Password: catalog.Secret{Source: catalog.SecretEnv, Ref: "ACME_SMTP_PASSWORD"}, FromEmail: "hello@acme.example", FromName: "Acme", TLSEnabled: true, Active: true})

	u = catalog.DeriveTemplateUUID(uuid, "WELCOME")
	check("template", p.Templates[0], catalog.Template{ID: catalog.DeriveID(catalog.KindTemplate, u), UUID: u, ProjectID: id, Code: "WELCOME", Name: "Welcome",
		SubjectTemplate: "Welcome to {{projectName}}, {{userName}}", BodyHTML: "<p>Hello {{userName}}</p>\r\n", BodyText: "Hello {{userName}},\ngood to have you.\n", Active: true})
	check("receipt", p.Templates[1].BodyText, "Thank you, {{userName}}.\n\nYour order {{number}} of {{date}} is on its way.")
	if !strings.Contains(p.Templates[1].BodyHTML, "\n    <p>Price: ${amount} or {{amount}}</p>\n") {
		t.Errorf("html: %q", p.Templates[1].BodyHTML)
	}
	u = catalog.DeriveTemplateUUID(catalog.UUID{}, "PASSWORD_RESET")
	check("default template", d.Templates[0].UUID, u)

	check("defaults", d.Defaults.Auth.Password.MinLength, 10)
	check("defaults said", d.Defaults.Auth.Said, catalog.FieldSet(0).With(0).With(3).With(4).With(12))
	check("key", [2]any{d.Keys[0].Allow, d.Keys[0].ExpiresAt}, [2]any{catalog.MayResolve | catalog.MayMail, time.Date(2027, 6, 30, 0, 0, 0, 0, time.UTC)})
	check("recipients", len(d.Sealing.Recipients), 1)
	check("deps", r.Deps, []string{"mail/welcome.html"})
	check("plain secret", r.PlainSecret, false)
	for _, ref := range d.Refs() {
		if r.Position(ref).Line == 0 {
			t.Errorf("no position for %+v", ref)
		}
	}
}

// TestDecodeWithoutReadFile leaves bodies by file() empty and does not complain about it.
func TestDecodeWithoutReadFile(t *testing.T) {
	src := []byte("template \"A\" {\n  name = \"A\"\n  subject_template = \"A\"\n  body_html = file(\"a.html\")\n}\n")
	r, ds := hclfile.Decode("a.hcl", src, hclfile.Options{})
	if len(ds) > 0 || r.Declared.Templates[0].BodyHTML != "" || len(r.Deps) != 1 {
		t.Errorf("%v %v %s", r.Declared.Templates, r.Deps, text(ds))
	}
	failed := errors.New("permission denied")
	_, ds = hclfile.Decode("a.hcl", src, hclfile.Options{ReadFile: func(string) ([]byte, error) { return nil, failed }})
	if len(ds) != 1 || ds[0].Start.Line != 4 || ds[0].Detail != failed.Error() {
		t.Error(text(ds))
	}
}

// TestDiagnose finds objects by their Ref.
func TestDiagnose(t *testing.T) {
	r, _ := readGood(t, "acme.hcl")
	p := r.Declared.Projects[0].Project
	f := func(ref catalog.Ref, line, column int, snippet string) {
		t.Helper()
		d := r.Diagnose(ref, hclfile.Warning, "summary", "detail")
		if d.Start.Line != line || d.Start.Column != column || !strings.Contains(d.Snippet, snippet) || d.Severity != hclfile.Warning || d.File != "acme.hcl" {
			t.Errorf("%+v: %+v", ref, d)
		}
		if r.Position(ref) != d.Start {
			t.Errorf("%+v: Position is %+v", ref, r.Position(ref))
		}
	}
	f(catalog.Ref{Kind: catalog.KindProject, Name: "acme"}, 2, 1, `project "acme" {`)
	f(catalog.Ref{Kind: catalog.KindProject, Name: "acme", ID: p.ID, UUID: p.UUID}, 2, 1, `project "acme" {`)
	f(catalog.Ref{Kind: catalog.KindDomain, Name: "*.acme.example", ProjectID: p.ID}, 8, 3, `domain "*.acme.example" {}`)
	f(catalog.Ref{Kind: catalog.KindTemplate, Name: "RECEIPT", ProjectID: p.ID}, 47, 3, `template "RECEIPT"`)
	f(catalog.Ref{Kind: catalog.KindTemplate, Name: "PASSWORD_RESET"}, 69, 1, `template "PASSWORD_RESET"`)
	f(catalog.Ref{Kind: catalog.KindKey, Name: "checkout"}, 83, 1, `key "checkout"`)
	f(catalog.Ref{Kind: catalog.KindDefaults}, 75, 1, `defaults {`)
	f(catalog.Ref{Kind: catalog.KindDomain, Name: "*.acme.example"}, 0, 0, "")
	f(catalog.Ref{Kind: catalog.KindKey, Name: "other"}, 0, 0, "")
}

// TestIdentity reads written identities.
func TestIdentity(t *testing.T) {
	r, _ := readGood(t, "identity.hcl")
	p := r.Declared.Projects[0]
	uuid, _ := catalog.ParseUUID("11111111-2222-4333-8444-555555555555")
	if p.Project.UUID != uuid || p.Project.ID != 42 {
		t.Errorf("%+v", p.Project)
	}
	if want := catalog.DeriveDomainUUID(uuid, "a.example"); p.Domains[0].UUID != want || p.Domains[0].ProjectID != 42 {
		t.Errorf("a domain's uuid follows from its project's: %+v", p.Domains[0])
	}
	if p.Domains[1].ID != 7 || p.Domains[1].UUID.String() != "aaaaaaaa-2222-4333-8444-555555555555" {
		t.Errorf("%+v", p.Domains[1])
	}
	if want := catalog.DeriveUUID(catalog.KindServiceSettings, uuid); p.Service.UUID != want {
		t.Errorf("service settings: %v", p.Service.UUID)
	}
	if got := p.Auth.UUID.String(); got != "bbbbbbbb-2222-4333-8444-555555555555" || p.Auth.ID != catalog.DeriveID(catalog.KindAuthSettings, p.Auth.UUID) {
		t.Errorf("auth settings: %v", got)
	}
	has := func(want bool, ref catalog.Ref) {
		t.Helper()
		if r.HasUUID(ref) != want {
			t.Errorf("HasUUID(%+v) is %v", ref, !want)
		}
	}
	has(true, catalog.Ref{Kind: catalog.KindProject, Name: "one"})
	has(true, catalog.Ref{Kind: catalog.KindProject, Name: "two"})
	has(false, catalog.Ref{Kind: catalog.KindProject, Name: "three"})
	has(false, catalog.Ref{Kind: catalog.KindDomain, Name: "a.example", ProjectID: 42})
	has(true, catalog.Ref{Kind: catalog.KindDomain, Name: "b.example", ProjectID: 42})
	if fmt.Sprint(r.NewUUIDs) != "[two]" || r.Declared.Projects[1].Project.UUID != catalog.DeriveProjectUUID("two") {
		t.Errorf("new: %v", r.NewUUIDs)
	}
}
