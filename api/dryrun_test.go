package api_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"fingerpost/api/transfer"
	"fingerpost/cmd/testrig"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

const dryRunFiles = `# The shop.
project "acme" {
  name   = "Acme"
  status = "ACTIVE"

  domain "shop.acme.example" {
    primary = true
  }

  smtp_config {
    host       = "smtp.acme.example"
    from_email = "shop@acme.example"
    username   = "shop"
    password   = env("ACME_PASSWORD")
  }
}

project "globex" {
  name = "Globex"
  domain "*.globex.example" {}
}

key "acme-team" {
  id       = "acmeteam1"
  hash     = "{{hash}}"
  allow    = ["read", "write"]
  projects = ["acme", "globex"]
}

webhook "acme-team" {
  url    = "https://hooks.acme.example/x"
  secret = env("ACME_WEBHOOK_SECRET")
}

sealing {
  recipients = ["{{recipient}}"]
}
`

// planFiles is the plan that serve gives to its server.
func planFiles(was, is []*catalog.Declared, defaults *catalog.Defaults) any {
	return transfer.PlanFiles(was, is, defaults)
}

func newDryRunDesk(t *testing.T) (d *desk, limited string) {
	t.Helper()
	limited, id := catalog.NewKeyText()
	content := strings.NewReplacer("acmeteam1", id, "{{hash}}", catalog.HashKeyText(limited)).Replace(dryRunFiles)
	d = newDesk(t, map[string]string{"all.hcl": content})
	return d, limited
}

// everything returns the contents and stamps of all files below a folder.
func everything(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		info, serr := e.Info()
		if err == nil && serr == nil {
			found[path] = info.ModTime().String() + "\n" + string(b)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestDryRun: every write that changes files shows its diff, and changes nothing.
func TestDryRun(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	d, limited := newDryRunDesk(t)
	acme, err := d.resolver.ProjectBySlug("acme")
	if err != nil {
		t.Fatal(err)
	}
	id := strconv.FormatInt(acme.ID, 10)
	domains, _, err := d.resolver.Domains(acme.ID, resolver.Query{})
	if err != nil {
		t.Fatal(err)
	}
	domain := strconv.FormatInt(domains[0].ID, 10)
	before, generation := everything(t, d.dir), d.source.Status().Generation
	audit := string(d.ask("GET", "/api/platform/audit", d.key).body)
	audit = audit[:strings.LastIndex(audit, `"timestamp"`)]

	mail := []string{"X-Internal-Service-Name: test"}
	for _, c := range []struct {
		method, path, key, body string
		want, never             []string // parts of the answer
	}{
		{"PUT", "projects/" + id, d.key, `{"status":"SUSPENDED"}`, []string{"-  status = \\\"ACTIVE\\\"\\n+  status = \\\"SUSPENDED\\\"", `"field":"status","old":"ACTIVE","new":"SUSPENDED"`, "--- a/all.hcl\\n+++ b/all.hcl\\n"}, nil},
		{"PUT", "projects/" + id, d.key, `{"status":"ACTIVE"}`, []string{`"diff":""`, `"changes":[]`}, nil},
		{"PUT", "projects/" + id, d.key, `{"slug":"acme-two"}`, []string{`acme-two`, `\"acme-two\", \"globex\"`}, nil},
		{"DELETE", "projects/" + id, d.key, "", []string{`"action":"remove","kind":"project"`, "-project"}, nil},
		{"POST", "projects", d.key, `{"name":"Initech"}`, []string{"--- /dev/null\\n+++ b/initech.hcl", `"action":"add"`}, nil},
		{"POST", "projects/" + id + "/domains", d.key, `{"domain":"a.globex.example"}`, []string{"would lie above", "a.globex.example"}, nil},
		{"PUT", "projects/" + id + "/domains/" + domain, d.key, `{"active":false}`, []string{"+    active  = false"}, nil},
		{"DELETE", "projects/" + id + "/domains/" + domain, d.key, "", []string{"-  domain \\\"shop.acme.example\\\""}, nil},
		{"PUT", "projects/" + id + "/service-settings", d.key, `{"mailEnabled":true}`, []string{"mail_enabled = true"}, nil},
		{"PUT", "projects/" + id + "/auth-settings", d.key, `{"registrationMode":"INVITE_ONLY"}`, []string{"INVITE_ONLY"}, nil},
		{"POST", "keys", d.key, `{"name":"ci","allow":["read"]}`, []string{`key \"ci\"`, "(redacted)"}, []string{"fpk_", "sha256"}},
		{"POST", "keys/acme-team/rotate", d.key, `{}`, []string{`"kind":"key"`}, []string{"fpk_"}},
		{"DELETE", "keys/acme-team", d.key, "", []string{`-key \"acme-team\"`}, nil},
		// A key that is bound to projects sees no line of another.
		{"PUT", "projects/" + id, limited, `{"name":"Acme Two"}`, []string{"-  name   = \\\"Acme\\\"\\n+  name   = \\\"Acme Two\\\"\\n\""}, []string{"status = ", "# The shop"}},
		{"DELETE", "projects/" + id + "/domains/" + domain, limited, "", []string{"-  domain"}, []string{"lobex"}},
	} {
		a := d.askBody(c.method, "/api/platform/"+c.path+"?dryRun=1", c.key, c.body)
		checkDry(t, c.method+" "+c.path+" "+c.body, a, c.want, c.never)
	}
	token := append(mail, "X-Internal-Service-Token: "+d.key)
	for _, c := range []struct{ method, path, body, want string }{
		{"PUT", "smtp-config", `{"host":"smtp.acme.example","fromEmail":"other@acme.example"}`, "other@acme.example"},
		{"DELETE", "smtp-config", "", "-  smtp_config"},
		{"PUT", "templates", `{"code":"welcome","name":"W","subjectTemplate":"Hi {{name}}","bodyText":"Hello"}`, `template \"welcome\"`},
	} {
		a := d.askBody(c.method, "/api/mail/projects/"+id+"/"+c.path+"?dryRun=1", "", c.body, token...)
		checkDry(t, c.method+" "+c.path, a, []string{c.want}, nil)
	}

	// The same errors as without a dry run.
	d.askBody("PUT", "/api/platform/projects/"+id+"?dryRun=1", d.key, `{"status":"BROKEN"}`).check(t, 400, "VALIDATION_ERROR")
	d.askBody("PUT", "/api/platform/projects/"+id+"?dryRun=1", d.key, `{"slug":"globex"}`).check(t, 409, "CONFLICT")
	d.askBody("PUT", "/api/platform/projects/"+id+"?dryRun=1", d.key, `{"name":"x"}`, `If-Match: "old"`).check(t, 412, "PRECONDITION_FAILED")
	d.askBody("PUT", "/api/mail/projects/"+id+"/smtp-config?dryRun=1", "", `{"password":"s3cret"}`, token...).check(t, 409, "FIELD_IS_EXPRESSION")
	// No guess at what was meant, and no send in place of a dry run.
	d.askBody("PUT", "/api/platform/projects/"+id+"?dryRun=yes", d.key, `{"name":"x"}`).check(t, 400, "VALIDATION_ERROR")
	d.askBody("POST", "/api/mail/send/raw?dryRun=1", "", `{}`, token...).check(t, 400, "VALIDATION_ERROR")

	after := everything(t, d.dir)
	if !maps.Equal(before, after) || d.source.Status().Generation != generation {
		t.Errorf("a dry run has changed something: generation %d, before %d", d.source.Status().Generation, generation)
	}
	if now := string(d.ask("GET", "/api/platform/audit", d.key).body); !strings.HasPrefix(now, audit) {
		t.Errorf("the audit trail is another: %s", now)
	}
}

func checkDry(t *testing.T, call string, a *answer, want, never []string) {
	t.Helper()
	a.check(t, 200, "")
	for _, part := range want {
		if !strings.Contains(string(a.body), part) {
			t.Errorf("%s: no %s in %s", call, part, a.body)
		}
	}
	for _, part := range never {
		if strings.Contains(string(a.body), part) {
			t.Errorf("%s: %s in %s", call, part, a.body)
		}
	}
}

// TestDryRunOfASecret: a changed password shows up as a line of sealed("…"), and never by its value.
func TestDryRunOfASecret(t *testing.T) {
	t.Parallel()
	d := newDesk(t, map[string]string{"all.hcl": strings.NewReplacer("    password   = env(\"ACME_PASSWORD\")\n", "", "acmeteam1", "acmeteam1x", "{{hash}}", catalog.HashKeyText("x")).Replace(dryRunFiles)})
	acme, err := d.resolver.ProjectBySlug("acme")
	if err != nil {
		t.Fatal(err)
	}
	path := "/api/mail/projects/" + strconv.FormatInt(acme.ID, 10) + "/smtp-config"
	token := []string{"X-Internal-Service-Name: test", "X-Internal-Service-Token: " + d.key}
	d.askBody("PUT", path, "", `{"password":"first-canary"}`, token...).check(t, 200, "")
	a := d.askBody("PUT", path+"?dryRun=1", "", `{"password":"second-canary"}`, token...)
	checkDry(t, "PUT", a, []string{`-    password   = sealed(\"…\")`, `+    password   = sealed(\"…\")`, `"secret":true`}, []string{"canary"})
}

// TestDryRunOfAProposal: a key that may only propose sees what a change would be, and makes none. Keys are not proposed.
func TestDryRunOfAProposal(t *testing.T) {
	t.Parallel()
	suggest, file := keyFile("suggest", `allow = ["propose", "secrets"]`)
	reader, other := keyFile("reader", `allow = ["resolve", "read", "mail", "secrets"]`)
	d := newDesk(t, map[string]string{"acme.hcl": "project \"acme\" {\n  name = \"Acme\"\n}\n", "s.hcl": file, "r.hcl": other})
	acme, err := d.resolver.ProjectBySlug("acme")
	if err != nil {
		t.Fatal(err)
	}
	id := strconv.FormatInt(acme.ID, 10)
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/api/platform/projects", `{"name":"New"}`},
		{"PUT", "/api/platform/projects/" + id, `{"name":"Other"}`},
		{"DELETE", "/api/platform/projects/" + id, ""},
		{"POST", "/api/platform/projects/" + id + "/domains", `{"domain":"acme.example"}`},
		{"PUT", "/api/platform/projects/" + id + "/service-settings", `{"mailEnabled":true}`},
		{"PUT", "/api/mail/projects/" + id + "/templates", `{"code":"C","name":"N","subjectTemplate":"S","bodyText":"B"}`},
	} {
		mail := func(key string) []string {
			return []string{"X-Internal-Service-Name: test", "X-Internal-Service-Token: " + key}
		}
		d.askBody(c.method, c.path+"?dryRun=1", suggest, c.body, mail(suggest)...).check(t, 200, "")
		d.askBody(c.method, c.path+"?dryRun=0", suggest, c.body, mail(suggest)...).check(t, 403, "FORBIDDEN")
		d.askBody(c.method, c.path+"?dryRun=1", reader, c.body, mail(reader)...).check(t, 403, "FORBIDDEN")
	}
	d.askBody("POST", "/api/platform/keys?dryRun=1", suggest, `{"name":"mine","allow":["propose"]}`).check(t, 403, "FORBIDDEN")
	if now, err := d.resolver.ProjectBySlug("acme"); err != nil || now.Name != "Acme" {
		t.Errorf("a dry run has changed something: %v, %v", now, err)
	}
}

// TestDryRunOfADeletion: a key that is bound to projects learns nothing of the keys that lose the project, not even the
// name of their file.
func TestDryRunOfADeletion(t *testing.T) {
	t.Parallel()
	limited, file := keyFile("limited", "allow = [\"read\", \"write\", \"propose\"]\n  projects = [\"alone\", \"beside\"]")
	_, other := keyFile("partner", "allow = [\"read\"]\n  projects = [\"alone\", \"beside\", \"covert\"]")
	_, inside := keyFile("inner", "allow = [\"read\"]\n  projects = [\"beside\", \"covert\"]")
	d := newDesk(t, map[string]string{
		"alone.hcl": "project \"alone\" {\n  name = \"Alone\"\n}\n", "covert.hcl": "project \"covert\" {\n  name = \"Covert\"\n}\n",
		"beside.hcl": "project \"beside\" {\n  name = \"Beside\"\n}\n\n" + inside, "limited.hcl": file, "partners/keys.hcl": other,
	})
	for slug, shown := range map[string]string{"alone": `-project \"alone\" {`, "beside": "--- a/beside.hcl"} {
		path := d.path(t, "/api/platform/projects/@"+slug) + "?dryRun=1"
		checkDry(t, slug, d.ask("DELETE", path, limited), []string{shown, `"action":"remove","kind":"project"`},
			[]string{"partner", "covert", "inner", "limited.hcl", "keys.hcl", "sha256"})
		checkDry(t, slug, d.ask("DELETE", path, d.key), []string{shown, "partners/keys.hcl", "limited.hcl", "covert"}, nil)
	}
}
