package api_test

import (
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestConsoleKeyExpiry: a new key ends in 30 or 90 days, never, or with a day; the form says where its two fields disagree.
func TestConsoleKeyExpiry(t *testing.T) {
	r := newConsoleRig(t, newDesk(t, map[string]string{"acme.hcl": "project \"acme\" {\n  name = \"Acme\"\n}\n"}))
	g := r.signIn(t, r.key)
	g.send("/console/edit?kind=key", nil)
	sent, seen := g.controls("/console/edit")
	g.nothingChanged("a new key")
	for _, c := range seen {
		if c.name == "expiresIn" && strings.Join(c.options, " ") != " 30d 90d day" {
			t.Errorf("the choices are %q", c.options)
		}
	}
	sent.Set("name", "made")
	sent["allow"] = []string{"read"}
	day := time.Now().UTC().AddDate(0, 0, 3).Format(time.DateOnly)
	f := func(in, at, wantIn, wantAt string) {
		t.Helper()
		sent.Set("expiresAt", at)
		call := g.changed("a key", sent, "expiresIn", in)
		if call == nil {
			return
		}
		gotIn, _ := call.body["expiresIn"].(string)
		gotAt, _ := call.body["expiresAt"].(string)
		if call.status != 200 || gotIn != wantIn || gotAt != wantAt {
			t.Errorf("%q, %q: %d %v: %s", in, at, call.status, call.body, visibleText(g.page))
		}
	}
	f("", "", "", "")
	f("30d", "", "30d", "")
	f("90d", "", "90d", "")
	f("day", day, "", day+"T23:59:59")
	bad := func(in, at, want string) {
		t.Helper()
		sent.Set("expiresIn", in)
		sent.Set("expiresAt", at)
		before := len(g.calls)
		if g.send("/console/edit", sent); len(g.calls) != before || !strings.Contains(g.page, want) {
			t.Errorf("%q, %q: %s", in, at, visibleText(g.page))
		}
	}
	bad("day", "", "must be a day such as")
	bad("30d", day, "where a day is given")
}

// TestConsoleFinder: the form of a key finds projects by what a person types, those that the key covers.
func TestConsoleFinder(t *testing.T) {
	limited, file := keyFile("limited", "allow = [\"read\"]\n  projects = [\"globex\"]")
	r := newConsoleRig(t, newDesk(t, map[string]string{"acme.hcl": "project \"acme\" {\n  name = \"Acme <b>\"\n}\n",
		"globex.hcl": "project \"globex\" {\n  name = \"Globex\"\n}\n", "key.hcl": file}))
	find := func(key, q string, want, not string) {
		t.Helper()
		g := r.signIn(t, key)
		g.send("/console/find-projects?"+url.Values{"q": {q}}.Encode(), nil)
		if g.status != 200 || !strings.Contains(g.page, want) || not != "" && strings.Contains(g.page, not) {
			t.Errorf("%q: %d %s", q, g.status, g.page)
		}
	}
	find(r.key, "acm", `data-add="f-projects" value="acme">Acme &lt;b&gt;`, "globex")
	find(r.key, "nobody", "No project is found.", "")
	find(limited, "acm", "No project is found.", "Acme")
	find(limited, "glo", `value="globex"`, "")
}
