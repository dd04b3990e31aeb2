package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

const explainedFile = `# The shop.
project "acme" {
  name   = "Acme"
  status = "ACTIVE"
  id     = 42
  domain "acme.example" { primary = true }
  domain "*.acme.example" {
    active = false
  }
  service_settings { mail_enabled = true }
  auth_settings {
    registration_mode = "INVITE_ONLY"
    jwt_secret        = env("SENTINEL_JWT")
  }
  smtp_config { from_email = "hello@acme.example" }
}

project "own" {
  name = "Own"
  smtp_config {
    host       = "smtp.own.example"
    username   = "own"
    password   = env("SENTINEL_OWN")
    from_email = "hello@own.example"
  }
}
`

const explainedDefaults = `defaults {
  service_settings { audit_enabled = true }
  auth_settings {
    password_min_length = 10
    approval_required   = true
  }
  smtp_config {
    host       = "relay.example"
    username   = "relay"
    password   = env("SENTINEL_RELAY")
    from_email = "mail@relay.example"
    from_name  = "Relay"
  }
}
`

// A full is an answer of view=full.
type full struct {
	ID              int64
	CreatedAt       string
	Labels          map[string]string
	Domains         []map[string]any
	ServiceSettings map[string]any
	AuthSettings    map[string]any
	SMTPConfig      map[string]any
	Origin          map[string]any
}

func readFull(t *testing.T, a *answer) (f full) {
	t.Helper()
	var body struct{ Data full }
	if a.StatusCode != http.StatusOK {
		t.Fatalf("%d: %s", a.StatusCode, a.body)
	}
	if err := json.Unmarshal(a.body, &body); err != nil {
		t.Fatal(err)
	}
	return body.Data
}

// places writes origins as "field=file:line", sorted; built-in values are left out.
func places(origins any) string {
	var all []string
	m, _ := origins.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(m)) {
		switch o := m[name].(type) {
		case string:
			if o != "built-in" {
				all = append(all, name+"="+o)
			}
		case map[string]any:
			if o["file"] != nil {
				all = append(all, fmt.Sprintf("%s=%v:%v", name, o["file"], o["line"]))
			}
		}
	}
	return strings.Join(all, " ")
}

func TestViewFull(t *testing.T) {
	t.Parallel()
	d := newDesk(t, map[string]string{"shops/acme.hcl": explainedFile, "defaults.hcl": explainedDefaults})
	a := d.ask("GET", projectPath(42)+"?view=full", d.key)
	f := readFull(t, a)
	same := func(what string, got, want any) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	same("id", f.ID, 42)
	same("domains", len(f.Domains), 2)
	same("first domain", f.Domains[0]["domain"], "acme.example")
	same("wildcard", []any{f.Domains[1]["active"], f.Domains[1]["certificates"]}, []any{false, false})
	same("mailEnabled", f.ServiceSettings["mailEnabled"], true)
	same("auditEnabled", f.ServiceSettings["auditEnabled"], true)
	same("inviteOnly", []any{f.AuthSettings["inviteOnly"], f.AuthSettings["approvalRequired"]}, []any{true, false})
	same("passwordMinLength", f.AuthSettings["passwordMinLength"], 10)
	same("relay", []any{f.SMTPConfig["id"], f.SMTPConfig["host"], f.SMTPConfig["port"], f.SMTPConfig["fromEmail"], f.SMTPConfig["fromName"]},
		[]any{nil, "relay.example", 587, "hello@acme.example", "Relay"})

	same("project", places(f.Origin), "id=shops/acme.hcl:5 name=shops/acme.hcl:3 slug=shops/acme.hcl:2 status=shops/acme.hcl:4")
	domains := f.Origin["domains"].([]any)
	same("domain", places(domains[0]), "domain=shops/acme.hcl:6 primary=shops/acme.hcl:6")
	same("wildcard's", places(domains[1]), "active=shops/acme.hcl:8 domain=shops/acme.hcl:7")
	same("service", places(f.Origin["serviceSettings"]), "auditEnabled=defaults mailEnabled=shops/acme.hcl:10")
	same("auth", places(f.Origin["authSettings"]), "approvalRequired=shops/acme.hcl:12 inviteOnly=shops/acme.hcl:12 "+
		"jwtSecret=shops/acme.hcl:13 passwordMinLength=defaults registrationMode=shops/acme.hcl:12")
	same("SMTP", places(f.Origin["smtpConfig"]), "fromEmail=shops/acme.hcl:15 fromName=defaults host=defaults password=defaults username=defaults")
	inherited := f.Origin["defaults"].(map[string]any)
	same("inherited service", places(inherited["serviceSettings"]), "auditEnabled=defaults.hcl:2")
	same("inherited auth", places(inherited["authSettings"]), "passwordMinLength=defaults.hcl:4")
	same("inherited SMTP", places(inherited["smtpConfig"]),
		"fromName=defaults.hcl:12 host=defaults.hcl:8 password=defaults.hcl:10 username=defaults.hcl:9")
	for _, word := range []string{"SENTINEL", d.dir} {
		if strings.Contains(string(a.body), word) {
			t.Errorf("the answer holds %s: %s", word, a.body)
		}
	}

	own := readFull(t, d.ask("GET", projectPath(d.projectID(t, "own"))+"?view=full", d.key))
	same("own server", places(own.Origin["smtpConfig"]), "fromEmail=shops/acme.hcl:24 host=shops/acme.hcl:21 password=shops/acme.hcl:23 username=shops/acme.hcl:22")
	same("own server inherits nothing", len(own.Origin["defaults"].(map[string]any)["smtpConfig"].(map[string]any)), 0)
}

// TestViewFullETag: the tag covers values, origins and nothing else; a write and a broken file show as they are served.
func TestViewFullETag(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	files := map[string]string{"acme.hcl": explainedFile, "defaults.hcl": explainedDefaults}
	d, other := newDesk(t, maps.Clone(files)), newDesk(t, maps.Clone(files))
	path := projectPath(42) + "?view=full"
	get := func(d *desk) *answer { return d.ask("GET", path, d.key) }
	first := get(d)
	tag := first.Header.Get("ETag")
	if alone := d.ask("GET", projectPath(42), d.key).Header.Get("ETag"); tag == "" || tag == alone || tag != get(other).Header.Get("ETag") {
		t.Errorf("tag %q, of the project alone %q, on another node %q", tag, alone, get(other).Header.Get("ETag"))
	}
	if a := d.ask("GET", path, d.key, "If-None-Match: "+tag); a.StatusCode != http.StatusNotModified || len(a.body) > 0 {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := d.askBody("PUT", projectPath(42)+"/service-settings", d.key, `{"smsEnabled":true}`); a.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	after := get(d)
	if f := readFull(t, after); f.ServiceSettings["smsEnabled"] != true || places(f.Origin["serviceSettings"]) == places(readFull(t, first).Origin["serviceSettings"]) {
		t.Errorf("after a write: %s", after.body)
	}
	if after.Header.Get("ETag") == tag {
		t.Error("the tag is that from before the write")
	}
	d.save(t, map[string]string{"acme.hcl": "project \"acme\" {\n"})
	if err := d.source.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if broken := get(d); broken.Header.Get("ETag") != after.Header.Get("ETag") {
		t.Errorf("a broken file is not served: %s", broken.body)
	}
}

func TestViewFullRefused(t *testing.T) {
	t.Parallel()
	acme, block := keyText("acme", `"read"`, "  projects = [\"acme\"]\n")
	resolving, second := keyText("resolving", `"resolve"`, "")
	d := newDesk(t, map[string]string{"acme.hcl": explainedFile, "keys.hcl": block + second})
	f := func(key, path string, status int, code catalog.Code, fields ...string) {
		t.Helper()
		a := d.ask("GET", path, key)
		if a.StatusCode != status || status >= 400 && a.code() != string(code) || !slices.Equal(a.fields(), fields) {
			t.Errorf("%s: %d %s", path, a.StatusCode, a.body)
		}
	}
	project, other := projectPath(42), projectPath(d.projectID(t, "own"))
	f(d.key, project+"?view=", 400, catalog.CodeValidation, "view")
	f(d.key, project+"?view=FULL", 400, catalog.CodeValidation, "view")
	f(d.key, project+"?view=full&view=full", 400, catalog.CodeValidation, "view")
	f(d.key, project+"?view=%zz", 400, catalog.CodeValidation, "view")
	f(d.key, platformProjects+"/0?view=all", 400, catalog.CodeValidation, "id", "view")
	f(resolving, project+"?view=all", 400, catalog.CodeValidation, "view")
	f(resolving, project+"?view=full", 403, catalog.CodeForbidden)
	f(acme, project+"?view=full", 200, "")
	f(acme, other+"?view=full", 403, catalog.CodeForbidden)
	f(d.key, projectPath(4711)+"?view=full", 404, catalog.CodeNotFound)
	f("", project+"?view=full", 401, catalog.CodeUnauthorized)

	h := start(t)
	if a := h.ask("GET", projectPath(1)+"?view=full", h.all); a.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("without a config folder: %d %s", a.StatusCode, a.body)
	}
}

// TestViewFullLabels: the project's labels and a domain's certificates are there, each with its line.
func TestViewFullLabels(t *testing.T) {
	t.Parallel()
	d := newDesk(t, map[string]string{"acme.hcl": "project \"acme\" {\n  name = \"Acme\"\n  labels = {\n    plan = \"gold\"\n    shard = \"eu-1\"\n  }\n" +
		"  domain \"*.acme.example\" {\n    certificates = true\n  }\n  domain \"acme.example\" {}\n}\n"})
	f := readFull(t, d.ask("GET", projectPath(d.projectID(t, "acme"))+"?view=full", d.key))
	if !maps.Equal(f.Labels, map[string]string{"plan": "gold", "shard": "eu-1"}) || f.Domains[0]["certificates"] != true || f.Domains[1]["certificates"] != true {
		t.Errorf("%+v", f)
	}
	if got := places(f.Origin); got != "labels=acme.hcl:3 name=acme.hcl:2 slug=acme.hcl:1" {
		t.Error(got)
	}
	if got := places(f.Origin["domains"].([]any)[0]); got != "certificates=acme.hcl:8 domain=acme.hcl:7" {
		t.Error(got)
	}
	if got := places(f.Origin["domains"].([]any)[1]); got != "domain=acme.hcl:10" {
		t.Error(got)
	}
}

// TestBlock: the block is what stands in the file, without what is secret.
func TestBlock(t *testing.T) {
	t.Parallel()
	d := newDesk(t, map[string]string{"shop.hcl": `# Not of the block.
project "acme" {
  id   = 42
  name = "Acme" # the shop
  auth_settings {
    jwt_secret = "clear text that must not be shown"
  }
  smtp_config {
    host       = "smtp.acme.example"
    username   = "acme"
    password   = env("ACME_PASSWORD") # from the vault
    from_email = "hello@acme.example"
  }
}

project "other" {
  name = "Other"
}
`})
	got := d.ask("GET", "/api/platform/projects/42/block", d.key)
	got.check(t, 200, "")
	var block struct {
		Data struct {
			File, Text string
			Line       int
		}
	}
	if err := json.Unmarshal([]byte(got.body), &block); err != nil {
		t.Fatal(err)
	}
	want := `project "acme" {
  id   = 42
  name = "Acme" # the shop
  auth_settings {
    jwt_secret = (redacted)
  }
  smtp_config {
    host       = "smtp.acme.example"
    username   = "acme"
    password   = env("ACME_PASSWORD") # from the vault
    from_email = "hello@acme.example"
  }
}
`
	if b := block.Data; b.File != "shop.hcl" || b.Line != 2 || b.Text != want {
		t.Errorf("%s:%d\n%s\nwant shop.hcl:2\n%s", b.File, b.Line, b.Text, want)
	}
	d.ask("GET", "/api/platform/projects/43/block", d.key).check(t, 404, "NOT_FOUND")
}
