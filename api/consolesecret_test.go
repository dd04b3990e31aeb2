package api_test

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// secretForm opens the form of the SMTP config of a project that takes its password from the environment.
func secretForm(t *testing.T, more map[string]string) (g *guest, sent url.Values) {
	t.Helper()
	t.Setenv("STORY_SECRET", "from outside")
	files := map[string]string{"acme.hcl": `project "acme" {
  name = "Acme"

  smtp_config {
    host       = "mail.example"
    from_email = "shop@acme.example"
    username   = "acme"
    password   = env("STORY_SECRET") # in the vault
  }

  auth_settings {
    jwt_secret = env("STORY_TOKEN")
  }
}
`}
	t.Setenv("STORY_TOKEN", strings.Repeat("s", 40))
	maps.Copy(files, more)
	r := newConsoleRig(t, newDesk(t, files))
	p, err := r.resolver.ProjectBySlug("acme")
	if err != nil {
		t.Fatal(err)
	}
	g = r.signIn(t, r.key)
	g.send(fmt.Sprintf("/console/edit?kind=auth-settings&project=%d", p.ID), nil)
	if text := visibleText(g.page); !strings.Contains(g.page, "comes from the environment variable STORY_TOKEN") {
		t.Errorf("the secret of the tokens: %s", text)
	}
	g.send(fmt.Sprintf("/console/edit?kind=smtp-config&project=%d", p.ID), nil)
	sent, _ = g.controls("/console/edit")
	return g, sent
}

// TestConsoleEnvironment: the form says that the password comes from the environment, and offers to seal another one in its
// place, which the diff shows.
func TestConsoleEnvironment(t *testing.T) {
	g, sent := secretForm(t, map[string]string{"sealing.hcl": "sealing {\n  recipients = [\"{{recipient}}\"]\n}\n"})
	for _, want := range []string{"Its value comes from the environment variable STORY_SECRET of the server.",
		`Replace env(&#34;STORY_SECRET&#34;) by a sealed value`} {
		if !strings.Contains(g.page, want) {
			t.Errorf("the form lacks %q", want)
		}
	}
	g.nothingChanged("with the box, untouched")
	alone := maps.Clone(sent)
	alone.Set("seal.password", "1")
	before := len(g.calls)
	if g.send("/console/edit", alone); len(g.calls) != before || !strings.Contains(g.page, "type the value that is sealed") {
		t.Errorf("the box alone: %d calls, %s", len(g.calls)-before, visibleText(g.page))
	}
	if call := g.changed("without the box", sent, "password", "new"); call == nil || call.status != 409 ||
		!strings.Contains(g.page, "Replace env(") {
		t.Errorf("without the box: %v", call)
	}
	if call := g.changed("with the box", alone, "password", "new"); call == nil || call.status != 200 || call.body["sealPassword"] != true {
		t.Fatalf("with the box: %v, %s", call, visibleText(g.page))
	}
	diff := regexp.MustCompile(`<[^>]+>`).ReplaceAllString(g.page, "")
	for _, want := range []string{"password   = env(&#34;STORY_SECRET&#34;) # in the vault", "sealed(&#34;…&#34;)"} {
		if !strings.Contains(diff, want) {
			t.Errorf("the diff lacks %q: %s", want, visibleText(g.page))
		}
	}
	g.send(g.path, url.Values{"token": sent["token"], "do": {"save"}})
	if !strings.Contains(g.page, "live.") {
		t.Errorf("not saved: %s", visibleText(g.page))
	}
}

// TestConsoleNoSealing: where no sealing block names recipients, the page says what to do.
func TestConsoleNoSealing(t *testing.T) {
	g, sent := secretForm(t, nil)
	sent.Set("seal.password", "1")
	call := g.changed("with the box", sent, "password", "new")
	if call == nil || call.status != 409 || !strings.Contains(g.page, "secrets keygen") {
		t.Errorf("%v: %s", call, visibleText(g.page))
	}
}
