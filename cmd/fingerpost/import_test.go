package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"fingerpost/api/client"
	"fingerpost/api/transfer"
	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/configsrc/folder"
)

// stock fills a foreign server with two projects and their mail settings.
func (f *foreign) stock() {
	id := f.add(object{"name": "Acme", "slug": "acme", "status": "active", "description": "two\nlines"},
		object{"domain": "*.acme.example"}, object{"domain": "Shop.Acme.Example.", "primary": true}, object{"domain": "old.example", "active": false})
	f.service[id]["mailEnabled"] = true
	f.auth[id]["registrationMode"], f.auth[id]["approvalRequired"] = "APPROVAL_REQUIRED", true
	f.smtp[id] = object{"id": f.id(), "projectId": id, "host": "smtp.example", "port": 587, "username": "acme", "fromEmail": "a@acme.example",
		"fromName": nil, "replyTo": nil, "sslEnabled": false, "tlsEnabled": true, "active": true}
	f.saveTemplate(0, object{"code": "WELCOME", "name": "Welcome", "subjectTemplate": "Hello {{userName}}", "bodyText": "Hello {{userName}},\ngood day.\n"})
	f.saveTemplate(id, object{"code": "WELCOME", "name": "Own", "subjectTemplate": "Hi", "bodyHtml": "<p>{{userName}}</p>", "active": false})
	f.add(object{"name": "Big", "slug": "3-big", "id": int64(1 << 40)})
}

const wantAcme = `project "acme" {
  name = "Acme"
  description = trimsuffix(<<-EOT
    two
    lines
  EOT
  , "\n")
  status = "ACTIVE"
  uuid   = "00000065-0000-4000-8000-000000000000"
  id     = 101

  domain "shop.acme.example" {
    primary = true
    id      = 103
  }
  domain "*.acme.example" {
    id = 102
  }
  domain "old.example" {
    active = false
    id     = 104
  }

  service_settings {
    mail_enabled = true
  }

  auth_settings {
    registration_mode = "APPROVAL_REQUIRED"
  }

  smtp_config {
    host        = "smtp.example"
    port        = 587
    username    = "acme"
    password    = env("ACME_SMTP_PASSWORD")
    from_email  = "a@acme.example"
    tls_enabled = true
  }

  template "WELCOME" {
    name             = "Own"
    subject_template = "Hi"
    body_html        = "<p>{{userName}}</p>"
    active           = false
    id               = 109
  }
}
`

const wantTemplates = `template "WELCOME" {
  name             = "Welcome"
  subject_template = "Hello {{userName}}"
  body_text        = <<-EOT
    Hello {{userName}},
    good day.
  EOT
  id               = 108
}
`

func read(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestImportForeign imports everything from another implementation of the service.
func TestImportForeign(t *testing.T) {
	for name, tune := range map[string]func(*foreign){
		"paging":      func(*foreign) {},
		"whole lists": func(f *foreign) { f.paging = false },
		"no queries":  func(f *foreign) { f.paging, f.strict = false, true },
	} {
		t.Run(name, func(t *testing.T) {
			f := newForeign(t)
			f.stock()
			tune(f)
			dir := filepath.Join(t.TempDir(), "projects.d")
			c := f.with(t, dir, "import")
			if c.code != cli.ExitOK {
				t.Fatalf("%+v", c)
			}
			if got := read(t, dir, "acme.hcl"); got != wantAcme {
				t.Errorf("acme.hcl:\n%s\nwant\n%s", got, wantAcme)
			}
			if got := read(t, dir, "_templates.hcl"); got != wantTemplates {
				t.Errorf("_templates.hcl:\n%s\nwant\n%s", got, wantTemplates)
			}
			for _, want := range []string{"acme.hcl: smtp_config password = env(\"ACME_SMTP_PASSWORD\")", `project "3-big" has the id 1099511627776`,
				"session_timeout"} {
				if !strings.Contains(c.err, want) {
					t.Errorf("stderr lacks %q:\n%s", want, c.err)
				}
			}
			for _, args := range [][]string{{"validate", "--config", dir}, {"fmt", "--check", dir}} {
				if c := invoke(t, args...); c.code != cli.ExitOK {
					t.Errorf("%v: %+v", args, c)
				}
			}
			if c := f.with(t, dir, "plan"); c.code != cli.ExitOK {
				t.Errorf("plan: %+v", c)
			}
		})
	}
}

// TestImportMailless: a 404 on the mail calls means that there is no mail API, and further calls are soon left out.
func TestImportMailless(t *testing.T) {
	f := newForeign(t)
	f.mail = false
	for i := range 200 {
		f.add(object{"name": "N", "slug": fmt.Sprintf("p%03d", i)})
	}
	dir := t.TempDir()
	c := f.with(t, dir, "import")
	if c.code != cli.ExitOK || !strings.Contains(c.err, "not kept: SMTP config and templates of 200 projects") {
		t.Errorf("%+v", c)
	}
	const enoughMisses = 16 // after so many projects, the client takes the mail API for absent
	if n := f.asked("GET /api/mail"); n < enoughMisses || n > enoughMisses+2*8 {
		t.Errorf("%d mail calls", n)
	}
	if n := f.asked("GET /api/platform/projects"); f.asked("GET /api/platform/projects/") != n-2 {
		t.Errorf("the list of 200 took other than 2 pages")
	}
}

// TestImportBodiless: the source specification has no call that returns a template's body.
func TestImportBodiless(t *testing.T) {
	f := newForeign(t)
	f.stock()
	f.bodies = false
	dir := t.TempDir()
	c := f.with(t, dir, "import")
	if c.code != cli.ExitOK || !strings.Contains(c.err, "no call that tells their bodies") || strings.Contains(read(t, dir, "acme.hcl"), "template") {
		t.Errorf("%+v\n%s", c, read(t, dir, "acme.hcl"))
	}
}

// TestImportProblems: everything that no file can express is reported at once, and nothing is written.
func TestImportProblems(t *testing.T) {
	f := newForeign(t)
	f.add(object{"name": "A", "slug": "Not A Slug"})
	f.add(object{"name": "A", "slug": "../../etc/passwd"})
	f.add(object{"name": "A", "slug": "twice"}, object{"domain": "a b"}, object{"domain": "10.0.0.1"}, object{"domain": "x.example", "primary": true},
		object{"domain": "y.example", "primary": true})
	f.add(object{"name": "A", "slug": "twice"}, object{"domain": "X.example"})
	f.add(object{"name": "\x1b[31mred", "slug": "odd", "status": "ARCHIVED"})
	dir := filepath.Join(t.TempDir(), "new")
	c := f.with(t, dir, "import")
	if c.code != cli.ExitNot {
		t.Errorf("exit code %d", c.code)
	}
	for _, want := range []string{
		`project 101 ("Not A Slug"): slug may hold lower-case letters`,
		`("../../etc/passwd"): slug may hold`,
		`domain "a b" holds a character`, `domain "10.0.0.1" is an IP address`, `"x.example" and "y.example" are both primary`,
		`another project of the server has this slug, too`, `domain "x.example" belongs to project "twice", too`,
		`("odd"): status must be one of DRAFT, ACTIVE, SUSPENDED`, `("odd"): name must not hold control characters`, "nothing was written",
	} {
		if !strings.Contains(c.err, want) {
			t.Errorf("stderr lacks %q:\n%s", want, c.err)
		}
	}
	if strings.Contains(c.err, "\x1b") {
		t.Error("it lets the server act on the terminal")
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the folder was made")
	}
	var doc transfer.Imported
	c = f.with(t, dir, "import", "--json")
	if err := json.Unmarshal([]byte(c.out), &doc); err != nil || len(doc.Problems) != 9 || doc.Files == nil {
		t.Errorf("--json: %v %s", err, c.out)
	}
}

// TestImportInterrupted: an interrupted import has written nothing.
func TestImportInterrupted(t *testing.T) {
	f := newForeign(t)
	for i := range 50 {
		f.add(object{"name": "N", "slug": fmt.Sprintf("p%d", i)})
	}
	ctx, cancel := context.WithCancel(context.Background())
	f.mangle = func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/auth-settings") {
			cancel()
		}
		return false
	}
	t.Setenv("FINGERPOST_KEY", foreignKey)
	dir := t.TempDir()
	c := invokeIn(t, ctx, "import", "--url", f.URL, "--config", dir)
	if c.code != cli.ExitFailed || !strings.Contains(c.err, "nothing was written") {
		t.Errorf("%+v", c)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("it left %v, %v", left, err)
	}
}

// TestImportFlat: settings that only the flat form of resolve shows are imported, except the secret.
func TestImportFlat(t *testing.T) {
	f := newForeign(t)
	f.add(object{"name": "Acme", "slug": "acme"}, object{"domain": "acme.example"})
	f.flatForm = object{"project": object{"id": "101", "slug": "acme"}, "matchedDomain": "acme.example",
		"authSettings":    object{"jwtEnabled": true, "jwtSecret": "sentinel-jwt-secret", "jwtExpiresIn": "5m", "sessionTimeout": 60},
		"serviceSettings": object{"smsProvider": "twilio", "auditRetentionDays": 7}}
	dir := t.TempDir()
	if c := f.with(t, dir, "import"); c.code != cli.ExitOK || !strings.Contains(c.err, "acme.hcl: auth_settings jwt_secret") {
		t.Errorf("%+v", c)
	}
	got := read(t, dir, "acme.hcl")
	for _, want := range []string{`sms_provider\s+= "twilio"`, `audit_retention_days = 7`, `jwt_secret\s+= env\("ACME_JWT_SECRET"\)`,
		`jwt_expires_in\s+= "5m"`, `session_timeout = 60`} {
		if !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if strings.Contains(got, "sentinel") {
		t.Errorf("the secret stands in the file:\n%s", got)
	}
}

// TestImportDefaults: in a folder with a defaults block the imported files mean the same together with it.
func TestImportDefaults(t *testing.T) {
	f := newForeign(t)
	f.add(object{"name": "Acme", "slug": "acme"})
	dir := t.TempDir()
	text := "defaults {\n  service_settings { mail_enabled = true }\n  auth_settings { two_factor_required = true }\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "defaults.hcl"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if c := f.with(t, dir, "import"); c.code != cli.ExitOK {
		t.Fatalf("%+v", c)
	}
	if got := read(t, dir, "acme.hcl"); !strings.Contains(got, "mail_enabled = false") || !strings.Contains(got, "two_factor_required = false") {
		t.Errorf("the defaults would change what the project has:\n%s", got)
	}
	if c := f.with(t, dir, "plan"); c.code != cli.ExitOK {
		t.Errorf("plan: %+v", c)
	}
}

// TestImportWritesWhatItPlaced: an import replaces no file that was saved after the import had read it.
func TestImportWritesWhatItPlaced(t *testing.T) {
	f := newForeign(t)
	f.add(object{"name": "A", "slug": "a"})
	ctx, at := context.Background(), client.Options{URL: f.URL, Key: foreignKey, Timeout: time.Minute}
	placed := func(dir string) *transfer.Import {
		im, err := transfer.ReadServer(ctx, client.New(at), nil, folder.MaxFileBytes, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		if ds, err := im.Place(dir, configFolder(dir), true); err != nil || len(ds) > 0 || len(im.Problems) > 0 {
			t.Fatal(ds, err, im.Problems)
		}
		return im
	}
	const old = "project \"a\" {\n  name = \"old\"\n}\n"
	dir := t.TempDir()
	im := placed(dir)
	edited := writeFiles(t, map[string]string{"a.hcl": old})
	if err := os.Rename(filepath.Join(edited, "a.hcl"), filepath.Join(dir, "a.hcl")); err != nil {
		t.Fatal(err)
	}
	if _, err := im.Write(ctx, configFolder(dir), nil); err == nil || read(t, dir, "a.hcl") != old {
		t.Error("a file that came meanwhile was replaced:", err)
	}
	im = placed(dir)
	edit(t, dir, "a.hcl", "old", "newer")
	if _, err := im.Write(ctx, configFolder(dir), nil); err == nil || !strings.Contains(err.Error(), "somebody saved it meanwhile") {
		t.Error(err)
	}
	im = placed(dir)
	if _, err := im.Write(ctx, configFolder(dir), nil); err != nil || !strings.Contains(read(t, dir, "a.hcl"), `"A"`) {
		t.Error(err, read(t, dir, "a.hcl"))
	}
}
