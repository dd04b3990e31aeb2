package api_test

import (
	"strings"
	"testing"
)

const wordsProject = `project "acme" {
  name = "Acme"
  domain "shop.acme.example" { verified = "pending" }
  domain "lost.acme.example" { verified = "lost" }
  domain "good.acme.example" {}
}

project "other" {
  name = "Other"
  domain "other.example" {}
}
`

// A secret that no line gives does not exist; domains say what their proof lacks; a key for one project does not read that
// nothing is there where it sees nothing; a new key belongs to Keys.
func TestConsoleSaysWhatIsTrue(t *testing.T) {
	t.Parallel()
	scoped, file := keyFile("scoped", "allow = [\"read\"]\n  projects = [\"acme\"]")
	r := newConsoleRig(t, newDesk(t, map[string]string{"all.hcl": wordsProject, "scoped.hcl": file}))
	g := r.signIn(t, r.key)
	page := func(path string) string {
		t.Helper()
		g.send(path, nil)
		if g.status != 200 {
			t.Fatalf("%s: %d %s", path, g.status, visibleText(g.page))
		}
		return g.page
	}
	if text := page("/console/projects/acme"); strings.Contains(text, "(secret)") || !strings.Contains(text, "pending: not proven yet") ||
		!strings.Contains(text, "lost: its proof is gone") || strings.Count(text, "proof is gone") != 1 {
		t.Errorf("the project's page: %s", text)
	}
	page("/console/edit?kind=key")
	if !strings.Contains(g.page, `<a href="/console/keys" aria-current="page">`) || strings.Contains(g.page, `<a href="/console/projects" aria-current="page">`) {
		t.Errorf("a new key is not below Keys: %s", g.page)
	}
	g = r.signIn(t, scoped)
	if text := page("/console/lookup?domain=other.example"); !strings.Contains(text, "No project that your key covers has this domain") || !strings.Contains(text, "no record that your key covers") {
		t.Errorf("a look-up of another's domain: %s", text)
	}
}
