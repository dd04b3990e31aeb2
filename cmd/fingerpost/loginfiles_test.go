package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/cmd/testrig"
	"fingerpost/configsrc/seal"
	"fingerpost/resolver/catalog"
)

const loginFile = `# Who signs in.
login "company" {
  issuer        = "http://10.1.2.3:8080/realms/ops"
  client_id     = "fingerpost"
  client_secret = env("OIDC_CLIENT_SECRET")

  rule {
    claim = "groups"
    value = "ops"
    allow = ["read", "write"]
  }
  # The agency.
  rule {
    claim    = "email"
    value    = "*@agency.example"
    allow    = ["read", "propose"]
    projects = ["acme", "other"] # two
  }
}
`

// TestLoginFiles: the file of a login follows a project that gets another slug or goes, the audit trail and plan tell each
// change of it, and no answer has more than that.
func TestLoginFiles(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	r := idleRig(t, t.TempDir(), map[string]string{"logins.hcl": loginFile})
	r.flags = []string{"--login-allow", "10.0.0.0/8"}
	r.start()
	want := func(pairs ...string) {
		t.Helper()
		if got, want := read(t, r.path("logins.hcl")), strings.NewReplacer(pairs...).Replace(loginFile); got != want {
			t.Errorf("the file is\n%s\nwant\n%s", got, want)
		}
	}
	write := func(method, slug, body string) {
		t.Helper()
		a := r.ask(method, projectsPath+"/"+r.projectID(slug), r.keys["write"], body, "Content-Type: application/json")
		if a.status != http.StatusOK {
			t.Fatalf("%s of %s: %d %s", method, slug, a.status, a.body)
		}
	}
	write(http.MethodPut, "acme", `{"slug":"acme-two"}`)
	want(`["acme"`, `["acme-two"`)
	write(http.MethodDelete, "other", "")
	want(`["acme", "other"]`, `["acme-two"]`)
	entries := func(action string) []string {
		t.Helper()
		var list []string
		for _, e := range r.trailOf() {
			if e.Action == action {
				list = append(list, fmt.Sprint(*e.Object, " ", e.Door))
				for _, c := range e.Changes {
					list[len(list)-1] += fmt.Sprintf("; %s: %s became %s", c.Field, c.Before, c.After)
				}
			}
		}
		return list
	}
	rules := func(projects string) string {
		return `["groups = \"ops\": read, write on every project","email = \"*@agency.example\": read, propose on ` + projects + `"]`
	}
	told := []string{"company api; rules: " + rules("acme, other") + " became " + rules("acme-two, other"),
		"company api; rules: " + rules("acme-two, other") + " became " + rules("acme-two")}
	if got := entries("login.update"); fmt.Sprint(got) != fmt.Sprint(told) {
		t.Errorf("the trail tells\n%q\nwant\n%q", got, told)
	}

	next := strings.Replace(read(t, r.path("logins.hcl")), `"OIDC_CLIENT_SECRET"`, `"OTHER"`, 1)
	r.put("logins.hcl", next+strings.Replace(loginFile, `"company"`, `"second"`, 1))
	testrig.Eventually(t, "the trail has both logins", func() bool { return len(entries("login.create")) == 1 && len(entries("login.update")) == 3 })
	if got := entries("login.update")[2]; got != `company file; clientSecret: "env(\"OIDC_CLIENT_SECRET\")" became "env(\"OTHER\")"` {
		t.Errorf("the trail tells %s", got)
	}
	r.put("logins.hcl", next)
	testrig.Eventually(t, "one login goes", func() bool { return len(entries("login.delete")) == 1 })
	r.halt()

	if out, code := r.run("plan", "--data", ".fingerpost", "--login-allow", "10.0.0.0/8"); code != cli.ExitOK {
		t.Errorf("plan of what is served: %d %s", code, out)
	}
	r.put("logins.hcl", strings.Replace(next, `value = "ops"`, `value = "admins"`, 1))
	out, code := r.run("plan", "--data", ".fingerpost", "--login-allow", "10.0.0.0/8")
	if code != cli.ExitNot || !strings.Contains(out, `login "company"`) || !strings.Contains(out, `rule: groups = "ops": read, write on every project → none`) ||
		!strings.Contains(out, `rule: none → groups = "admins": read, write on every project`) || strings.Contains(out, "agency") {
		t.Errorf("plan: %d %s", code, out)
	}
	r.flags = nil
	r.start() // what was accepted goes on; the file that has changed is a problem
	testrig.Eventually(t, "the file is a problem without the flag", func() bool {
		_, all, err := r.problems()
		return err == nil && strings.Contains(fmt.Sprint(all), "--login-allow")
	})
}

// TestLoginAllow: validate judges the address of an issuer by --login-allow, and only warns without it.
func TestLoginAllow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := strings.Replace(loginFile, `    projects = ["acme", "other"] # two`+"\n", "", 1)
	if err := os.WriteFile(filepath.Join(dir, "logins.hcl"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if c := invoke(t, "validate", "--config", dir); c.code != cli.ExitOK || !strings.Contains(c.err+c.out, "--login-allow") {
		t.Errorf("validate: %+v", c)
	}
	if c := invoke(t, "validate", "--config", dir, "--login-allow", "192.168.0.0/16"); c.code != cli.ExitNot {
		t.Errorf("validate with other networks: %+v", c)
	}
	if c := invoke(t, "validate", "--config", dir, "--login-allow", "10.0.0.0/8"); c.code != cli.ExitOK || !strings.Contains(c.err, "0 warnings") {
		t.Errorf("validate with the network: %+v", c)
	}
	if c := invoke(t, "validate", "--config", dir, "--login-allow", "10.1.2.3"); c.code != cli.ExitUsage || !strings.Contains(c.err, "did you mean 10.1.2.3/32?") {
		t.Errorf("validate with an address: %+v", c)
	}
	if err := os.WriteFile(filepath.Join(dir, "logins.hcl"), []byte(loginFile), 0o644); err != nil {
		t.Fatal(err)
	}
	c := invoke(t, "validate", "--config", dir, "--login-allow", "10.0.0.0/8")
	if c.code != cli.ExitOK || !strings.Contains(c.out+c.err, `login "company" names the project "acme", which no file declares`) ||
		!strings.Contains(c.out+c.err, "logins.hcl:17:") {
		t.Errorf("validate with unknown projects: %+v", c)
	}
}

// TestSealLogin: a client secret is sealed by the name of the login and opens there, also after reseal.
func TestSealLogin(t *testing.T) {
	dir, key := t.TempDir(), filepath.Join(t.TempDir(), "seal.key")
	run := func(stdin string, want int, args ...string) (out, errs string) {
		t.Helper()
		var o, e bytes.Buffer
		code := runContext(context.Background(), append(append([]string{"secrets"}, args...), "--config", dir, "--seal-key", key),
			cli.Terminal{In: strings.NewReader(stdin), Out: &o, Err: &e})
		if code != want {
			t.Fatalf("%v: %d, %s %s", args, code, o.String(), e.String())
		}
		return o.String(), e.String()
	}
	run("", cli.ExitOK, "keygen")
	line, _ := run("hunter2\n", cli.ExitOK, "seal", "--login", "company")
	run("hunter2", cli.ExitUsage, "seal", "--login", "Company")
	run("hunter2", cli.ExitUsage, "seal", "--login", "company", "--webhook", "crm")
	run("hunter2", cli.ExitUsage, "seal", "--login", "company", "--defaults", "password")
	run("", cli.ExitNot, "seal", "--login", "company")
	file := filepath.Join(dir, "logins.hcl")
	text := strings.Replace(loginFile, `client_secret = env("OIDC_CLIENT_SECRET")`, strings.TrimSpace(line), 1)
	if text == loginFile || os.WriteFile(file, []byte(text), 0o644) != nil {
		t.Fatal(line)
	}
	if _, errs := run("", cli.ExitOK, "reseal"); !strings.Contains(errs, "1 value sealed anew") {
		t.Error(errs)
	}
	got := read(t, file)
	_, rest, _ := strings.Cut(got, `sealed("`)
	sealed, _, _ := strings.Cut(rest, `"`)
	ids, err := seal.Load(key)
	if err != nil {
		t.Fatal(err)
	}
	l := catalog.NewLogin("company")
	l.ClientSecret = catalog.Secret{Source: catalog.SecretSealed, Ref: sealed}
	if plain, err := (&seal.Secrets{Identities: ids}).OpenLogin(l); err != nil || plain != "hunter2" || got == text {
		t.Errorf("%q, %v, after reseal:\n%s", plain, err, got)
	}
	other := catalog.NewLogin("other")
	other.ClientSecret = l.ClientSecret
	if _, err := (&seal.Secrets{Identities: ids}).OpenLogin(other); err == nil {
		t.Error("another login opens it")
	}
}

// TestListsOfOthersStayHidden: a key that is limited to a project proposes to remove it. What it is shown has nothing of
// the keys, webhooks and logins that list the project next to others.
func TestListsOfOthersStayHidden(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	g := newProposalRig(t, map[string]string{"logins.hcl": strings.Replace(loginFile, "http://10.1.2.3:8080", "https://login.example", 1),
		"hooks.hcl": "webhook \"crm\" {\n  url = \"https://crm.example/\"\n  secret = env(\"A\")\n  projects = [\"acme\", \"other\"]\n}\n"})
	got := g.as("first", "end", http.MethodDelete, g.pathOf("acme"), "")
	g.must(got, http.StatusAccepted)
	for _, name := range []string{"company", "agency", "crm", "other"} {
		if strings.Contains(got.body, name) {
			t.Errorf("the answer has %q: %s", name, got.body)
		}
	}
	g.must(g.as("full", "", http.MethodPost, proposalsPath+"/end/apply", ""), http.StatusOK)
	if file := read(t, g.path("logins.hcl")); !strings.Contains(file, `projects = ["other"] # two`) {
		t.Errorf("the file is\n%s", file)
	}
}
