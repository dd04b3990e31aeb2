package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fingerpost/api/transfer"
	"fingerpost/cmd/fingerpost/cli"
)

// exportFiles are what the tests export: everything that the two APIs accept, and some things that they do not.
var exportFiles = map[string]string{
	"acme.hcl": `project "acme" {
  name   = "Acme"
  status = "ACTIVE"
  domain "shop.acme.example" { primary = true }
  domain "*.acme.example" {}
  service_settings { mail_enabled = true }
  auth_settings {
    registration_mode = "INVITE_ONLY"
    jwt_secret        = env("ACME_JWT")
  }
  smtp_config {
    host        = "smtp.example"
    username    = "acme"
    password    = env("ACME_SMTP")
    from_email  = "a@acme.example"
    tls_enabled = true
  }
  template "WELCOME" {
    name             = "Welcome"
    subject_template = "Hi {{userName}}"
    body_text        = <<-EOT
      Hello,
      {{userName}}.
    EOT
  }
}
`,
	"plain.hcl": "project \"plain\" {\n  name = \"Plain\"\n}\n",
}

func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func edit(t *testing.T, dir, name, old, with string) {
	t.Helper()
	text := read(t, dir, name)
	if !strings.Contains(text, old) {
		t.Fatalf("%s does not hold %q", name, old)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(text, old, with)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// changing counts the requests that change something.
func (f *foreign) changing() int { return f.asked("POST") + f.asked("PUT") + f.asked("DELETE") }

// TestExportForeign brings an empty server to the state of the files, with mail; a second run does nothing, and an
// import then has the same content.
func TestExportForeign(t *testing.T) {
	for name, postMail := range map[string]bool{"mail by PUT": false, "mail by POST": true} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("ACME_SMTP", "sentinel-smtp-password")
			f := newForeign(t)
			f.postMail = postMail
			dir := writeFiles(t, exportFiles)
			if c := f.with(t, dir, "export", "--dry-run"); c.code != cli.ExitOK || f.changing() > 0 || !strings.Contains(c.out, "export would be: 8 added") {
				t.Errorf("--dry-run: %+v, %d changing requests", c, f.changing())
			}
			c := f.with(t, dir, "export")
			if c.code != cli.ExitOK || !strings.Contains(c.out, "export: 8 added, 0 changed, 0 removed") || !strings.Contains(c.err, "not exported: jwt_secret of 1 project") {
				t.Errorf("%+v", c)
			}
			if !slices.Equal(f.passwords, []any{"sentinel-smtp-password"}) {
				t.Errorf("%d passwords were sent, want the one", len(f.passwords))
			}
			before := f.changing()
			if c := f.with(t, dir, "export"); c.code != cli.ExitOK || !strings.Contains(c.out, "no changes") || f.changing() != before {
				t.Errorf("again: %+v", c)
			}
			if c := f.with(t, dir, "plan"); c.code != cli.ExitOK {
				t.Errorf("plan: %+v", c)
			}
			back := t.TempDir()
			if c := f.with(t, back, "import"); c.code != cli.ExitOK {
				t.Errorf("import: %+v", c)
			}
			other := newForeign(t)
			other.next = 5000
			t.Setenv("ACME_SMTP_PASSWORD", "sentinel-smtp-password")
			if c := other.with(t, back, "export"); c.code != cli.ExitOK {
				t.Errorf("export of the import: %+v", c)
			}
			again := t.TempDir()
			if c := other.with(t, again, "import"); c.code != cli.ExitOK {
				t.Errorf("import of the export: %+v", c)
			}
			for _, name := range []string{"acme.hcl", "plain.hcl"} {
				if a, b := idless(read(t, back, name)), idless(read(t, again, name)); a != b {
					t.Errorf("%s was\n%s\nand is\n%s", name, a, b)
				}
			}
		})
	}
}

// idless removes the lines that no API lets a client choose, and the blanks that align others with them.
func idless(text string) string {
	var out []string
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 0 || f[0] != "uuid" && f[0] != "id" {
			out = append(out, strings.Join(f, " "))
		}
	}
	return strings.Join(out, "\n")
}

// TestExportPasswords: a password is sent if the server would have none, and if --passwords asks for it.
func TestExportPasswords(t *testing.T) {
	t.Setenv("ACME_SMTP", "sentinel-smtp-password")
	f := newForeign(t)
	dir := writeFiles(t, exportFiles)
	run := func(want int, args ...string) {
		t.Helper()
		f.passwords = nil
		if c := f.with(t, dir, append([]string{"export"}, args...)...); c.code != cli.ExitOK {
			t.Errorf("%v: %+v", args, c)
		}
		sent := 0
		for _, p := range f.passwords {
			if p != nil {
				sent++
			}
		}
		if sent != want {
			t.Errorf("%v: %d passwords were sent, want %d", args, sent, want)
		}
	}
	run(1)
	run(0)
	run(1, "--passwords", "all")
	edit(t, dir, "acme.hcl", "from_email ", "from_name = \"Acme\"\nfrom_email ")
	run(0)
	edit(t, dir, "acme.hcl", `"smtp.example"`, `"mail.example"`)
	run(1)
	edit(t, dir, "acme.hcl", `"mail.example"`, `"smtp.example"`)
	run(0, "--passwords", "none")

	// A password that cannot be opened is a problem before anything is sent.
	edit(t, dir, "acme.hcl", `"smtp.example"`, `"other.example"`)
	edit(t, dir, "acme.hcl", `"Acme"`, `"Acme anew"`)
	os.Unsetenv("ACME_SMTP")
	before := f.changing()
	c := f.with(t, dir, "export")
	if c.code != cli.ExitNot || !strings.Contains(c.err, "the environment variable ACME_SMTP is not set") || f.changing() != before {
		t.Errorf("%+v", c)
	}
}

// TestExportHidesEchoes: a server may repeat what it was sent, even in a refusal.
func TestExportHidesEchoes(t *testing.T) {
	t.Setenv("ACME_SMTP", "sentinel-smtp-password")
	f := newForeign(t)
	f.mangle = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != "GET" && strings.HasSuffix(r.URL.Path, "/smtp-config") {
			refuse(w, 400, "VALIDATION_ERROR", "bad password sentinel-smtp-password for "+foreignKey)
			return true
		}
		return false
	}
	dir := writeFiles(t, exportFiles)
	c := f.with(t, dir, "export")
	if c.code != cli.ExitFailed || !strings.Contains(c.err, "bad password (secret) for (secret)") {
		t.Errorf("%+v", c)
	}
	if !strings.Contains(c.out, `+ project "plain"`) || !strings.Contains(c.out, `+ domain "shop.acme.example" of project "acme"`) {
		t.Errorf("what did not fail was not done: %+v", c)
	}
	f.mangle = nil
	if c := f.with(t, dir, "export"); c.code != cli.ExitOK || c.out != "+ smtp_config of project \"acme\"\nexport: 1 added, 0 changed, 0 removed\n" {
		t.Errorf("the rest: %+v", c)
	}
}

// TestExportIgnored: a success after which a field is not as it was sent is a failure.
func TestExportIgnored(t *testing.T) {
	t.Setenv("ACME_SMTP", "sentinel-smtp-password")
	f := newForeign(t)
	f.statusful = false
	dir := writeFiles(t, exportFiles)
	c := f.with(t, dir, "export", "--json")
	var doc exported
	if err := json.Unmarshal([]byte(c.out), &doc); err != nil {
		t.Fatal(err, c.out)
	}
	if c.code != cli.ExitNot || !strings.Contains(c.err, "the server ignored 1 action") {
		t.Errorf("%+v", c)
	}
	at := slices.IndexFunc(doc.Actions, func(a transfer.Action) bool { return a.Result == transfer.Ignored })
	if at < 0 || doc.Actions[at].Name != "acme" || !strings.Contains(doc.Actions[at].Error, "does not take over status") {
		t.Errorf("%+v", doc.Actions)
	}
}

// TestExportDelete: removal needs --delete, and a server without a call for it is no success.
func TestExportDelete(t *testing.T) {
	t.Setenv("ACME_SMTP", "sentinel-smtp-password")
	f := newForeign(t)
	dir := writeFiles(t, exportFiles)
	f.with(t, dir, "export")
	edit(t, dir, "acme.hcl", `  domain "*.acme.example" {}`, "")
	if err := os.Remove(filepath.Join(dir, "plain.hcl")); err != nil {
		t.Fatal(err)
	}
	c := f.with(t, dir, "export")
	if c.code != cli.ExitOK || !strings.Contains(c.err, `left alone: project "plain"`) || !strings.Contains(c.err, `left alone: domain "*.acme.example" of project "acme"`) || f.asked("DELETE") > 0 {
		t.Errorf("%+v", c)
	}
	f.deletes = false
	c = f.with(t, dir, "export", "--delete")
	if c.code != cli.ExitFailed || !strings.Contains(c.err, "no call that removes a domain") || !strings.Contains(c.out, `- project "plain"`) {
		t.Errorf("%+v", c)
	}
	f.deletes = true
	if c = f.with(t, dir, "export", "--delete"); c.code != cli.ExitOK || !strings.Contains(c.out, "0 added, 0 changed, 1 removed") {
		t.Errorf("%+v", c)
	}
}

// TestExportRenames: slugs that follow each other, and domains that only change their names, keep their ids.
func TestExportRenames(t *testing.T) {
	f := newForeign(t)
	f.add(object{"name": "A", "slug": "a"}, object{"domain": "a.example"})
	f.add(object{"name": "B", "slug": "b"})
	dir := t.TempDir()
	if c := f.with(t, dir, "import"); c.code != cli.ExitOK {
		t.Fatalf("%+v", c)
	}
	edit(t, dir, "a.hcl", `project "a"`, `project "c"`)
	edit(t, dir, "a.hcl", `"a.example"`, `"z.example"`)
	c := f.with(t, dir, "export")
	if c.code != cli.ExitOK || c.out != "~ project \"c\"\n~ domain \"z.example\" of project \"c\"\nexport: 0 added, 2 changed, 0 removed\n" {
		t.Errorf("%+v", c)
	}
	if p := f.projects[0]; p["slug"] != "c" || len(f.projects) != 2 || len(f.domains[101]) != 1 || f.domains[101][0]["domain"] != "z.example" {
		t.Errorf("%v %v", f.projects, f.domains)
	}
}

// TestExportInterrupted: a change that has begun is finished and reported, the others are left to the next run.
func TestExportInterrupted(t *testing.T) {
	t.Setenv("FINGERPOST_KEY", foreignKey)
	files := map[string]string{}
	for _, slug := range strings.Split("abcdefghijklmnopqrstuvwxyz", "") {
		files[slug+".hcl"] = "project \"" + slug + "\" {\n  name = \"N\"\n  domain \"" + slug + ".example\" {}\n}\n"
	}
	dir := writeFiles(t, files)
	f := newForeign(t)
	ctx, cancel := context.WithCancel(context.Background())
	f.mangle = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == "POST" && strings.HasSuffix(r.URL.Path, "/domains") {
			cancel()
		}
		return false
	}
	c := invokeIn(t, ctx, "export", "--url", f.URL, "--config", dir, "--parallel", "2")
	f.restart(t)
	if c.code != cli.ExitFailed || !strings.Contains(c.err, "interrupted: the same command does the rest") {
		t.Errorf("%+v", c)
	}
	if done := strings.Count(c.out, "+ domain"); done == 0 || done > 4 || len(f.projects) == 26 {
		t.Errorf("%d domains, %d projects: %+v", done, len(f.projects), c)
	}
	f.mangle = nil
	if c := f.with(t, dir, "export"); c.code != cli.ExitOK {
		t.Errorf("the rest: %+v", c)
	}
	if c := f.with(t, dir, "export"); c.code != cli.ExitOK || !strings.Contains(c.out, "no changes") {
		t.Errorf("once more: %+v", c)
	}
}

// TestExportPrimary: the domain that stops being primary is changed first, for a server that allows only one.
func TestExportPrimary(t *testing.T) {
	f := newForeign(t)
	f.add(object{"name": "A", "slug": "a"}, object{"domain": "a.example"}, object{"domain": "z.example", "primary": true})
	dir := writeFiles(t, map[string]string{"a.hcl": `project "a" {
  name = "A"
  domain "a.example" { primary = true }
  domain "z.example" {}
}
`})
	if c := f.with(t, dir, "export"); c.code != cli.ExitOK {
		t.Errorf("%+v", c)
	}
	var puts []string
	for _, r := range f.requests {
		if strings.HasPrefix(r, "PUT ") {
			puts = append(puts, r)
		}
	}
	if want := []string{"PUT /api/platform/projects/101/domains/103", "PUT /api/platform/projects/101/domains/102"}; !slices.Equal(puts, want) {
		t.Errorf("%v, want %v", puts, want)
	}
}
