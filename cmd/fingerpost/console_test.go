package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// consoleFiles are a project with everything, one with the worst names, and a key for all of it.
func consoleFiles(smtpPort int) (files map[string]string, admin, shopOnly string) {
	admin, id := catalog.NewKeyText()
	shopOnly, shopID := catalog.NewKeyText()
	key := func(name, id, text, rights string) string {
		return fmt.Sprintf("key %q {\n  id = %q\n  hash = %q\n  %s\n}\n", name, id, catalog.HashKeyText(text), rights)
	}
	long := strings.Repeat("a", 63)
	return map[string]string{
		"acme.hcl": `# The shop.
project "acme" {
  name        = "Acme Shop" # as customers know it
  description = "Storefront and back office"
  status      = "ACTIVE"
  labels      = { plan = "gold" }

  domain "shop.acme.example" { primary = true }
  domain "*.acme.example" {}
  domain "old.acme.example" { active = false }

  service_settings { mail_enabled = true }
  auth_settings { jwt_secret = env("STORY_SECRET") }

  smtp_config {
    host       = "127.0.0.1"
    port       = ` + fmt.Sprint(smtpPort) + `
    from_email = "hello@acme.example"
  }

  template "WELCOME" {
    name             = "Welcome"
    subject_template = "Welcome, {{userName}}"
    body_html        = "<p style=\"color: green\">Hello {{userName}}</p>"
  }
}
`,
		"worst.hcl": `project "` + long + `" {
  name        = "<script>window.pwned = 1</script> \u202egnp.exe\u200b & a name that goes on and on without an end in sight"
  description = "<img src=x onerror='window.pwned = 1'>"
  domain "` + long + `.` + long + `.` + long + `.` + strings.Repeat("b", 53) + `.example" {}
  template "HOSTILE" {
    name             = "Hostile"
    subject_template = "</title><script>window.pwned = 1</script>"
    body_html        = "<img src=\"http://TRAP/image\"><link rel=stylesheet href=\"http://TRAP/style\"><script>window.parent.pwned = 1; document.location = 'http://TRAP/script'</script><iframe src=\"http://TRAP/frame\"></iframe><a href=\"http://TRAP/link\" target=\"_top\">way out</a><form action=\"http://TRAP/form\" method=\"post\"><input type=\"submit\"></form>"
  }
}
`,
		"key-admin.hcl": key("admin", id, admin, `allow = ["resolve", "read", "write", "mail", "secrets"]`),
		"key-shop.hcl":  key("shop", shopID, shopOnly, "allow = [\"read\"]\n  projects = [\"acme\"]"),
	}, admin, shopOnly
}

// rowID returns the id of the row of a list of the API whose field has the value.
func (r *rig) rowID(key, path, name, value string) string {
	r.t.Helper()
	got := r.ask(http.MethodGet, path, key, "", "X-Internal-Service-Token: "+key, "X-Internal-Service-Name: t")
	var list struct{ Data []map[string]any }
	d := json.NewDecoder(strings.NewReader(got.body))
	d.UseNumber()
	if err := d.Decode(&list); err != nil {
		r.t.Fatalf("%s: %v", got.body, err)
	}
	for _, row := range list.Data {
		if row[name] == value {
			return fmt.Sprint(row["id"])
		}
	}
	r.t.Fatalf("no %s = %q in %s", name, value, got.body)
	return ""
}

// generation returns the generation of the files that are served.
func (r *rig) generation() uint64 {
	r.t.Helper()
	res, err := http.Get(r.ops + "/status")
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	var status struct{ Config struct{ Generation uint64 } }
	if err := json.NewDecoder(res.Body).Decode(&status); err != nil {
		r.t.Fatal(err)
	}
	return status.Config.Generation
}

// waitGeneration waits until that many generations are served.
func (r *rig) waitGeneration(n uint64) {
	r.t.Helper()
	if err := poll(testrig.Patience, func() error {
		if now := r.generation(); now < n {
			return fmt.Errorf("generation %d, want %d", now, n)
		}
		return nil
	}); err != nil {
		r.t.Fatal(err)
	}
}
