package api_test

import (
	"net/url"
	"strings"
	"testing"

	"fingerpost/configsrc/hcledit"
	"fingerpost/resolver/catalog"
)

// TestConsoleBulk: the form below the list shows the diff of a change of what is ticked, or of all that a search found,
// and nothing changes before it is saved; unticked, unset or refused, it says so. The table is inert in a spreadsheet.
func TestConsoleBulk(t *testing.T) {
	t.Parallel()
	files := bulkFiles()
	files["formula.hcl"] = "project \"formula\" {\n  name   = \"=HYPERLINK(1)\"\n  labels = { plan = \"+1\" }\n}\n"
	reader := catalog.Key{Name: "reader", Allow: catalog.MayRead, Projects: []string{"p0", "p1"}}
	text := reader.Renew()
	files["reader.hcl"] = hcledit.KeyBlock(&reader)
	r := newConsoleRig(t, newDesk(t, files))
	g := r.signIn(t, r.key)
	post := func(form url.Values, status int, says ...string) {
		t.Helper()
		g.send("/console/projects", nil)
		sent, _ := g.controls("/console/bulk")
		for name, values := range form {
			sent[name] = values
		}
		g.send("/console/bulk", sent)
		for _, want := range says {
			if g.status != status || !strings.Contains(g.page, want) {
				t.Errorf("%v: %d without %q", form, g.status, want)
			}
		}
	}
	post(url.Values{"do": {"change"}, "status": {"SUSPENDED"}}, 400, "No project is ticked")
	post(url.Values{"do": {"change"}, "slug": {"p0"}}, 400, "Nothing was changed")
	post(url.Values{"do": {"change"}, "slug": {"p0"}, "status": {"DRAFT"}}, 400, "Nothing was changed")
	post(url.Values{"do": {"change"}, "slug": {"p0"}, "labels": {"gold"}}, 400, "neither name=value")
	post(url.Values{"do": {"change"}, "slug": {"p0", "nobody"}, "status": {"ACTIVE"}}, 404, "do not exist")
	r.compare(t, files)

	post(url.Values{"do": {"change"}, "slug": {"p0", "two"}, "status": {"ACTIVE"}, "labels": {"plan=gold\n-shard"}}, 200, "2 projects: what it changes", "p0.hcl", "two.hcl")
	r.compare(t, files)
	sent, _ := g.controls(g.path)
	sent.Set("do", "save")
	g.send(g.path, sent)
	if one, two := r.files(t)["p0.hcl"], r.files(t)["two.hcl"]; !strings.Contains(one, `plan = "gold"`) || strings.Contains(two, "shard") || !strings.Contains(two, "# the first") {
		t.Errorf("%s\n%s", one, two)
	}
	post(url.Values{"do": {"change"}, "all": {"1"}, "label": {"plan=gold"}, "status": {"SUSPENDED"}}, 200, "2 projects: what it changes")

	post(url.Values{"do": {"export"}, "all": {"1"}}, 200, "slug,name,status,domain,plan\n", "formula,'=HYPERLINK(1),DRAFT,,'+1\n", "p0,P0,ACTIVE,p0.example,gold\n")
	post(url.Values{"do": {"export"}, "slug": {"p1"}}, 200, "slug,name,status,domain\np1,P1,DRAFT,p1.example\n")

	post(url.Values{"do": {"export"}, "slug": {"p1", "nobody"}}, 400, "nobody was not found")

	g = r.signIn(t, text)
	if g.send("/console/projects", nil); strings.Contains(g.page, `value="change"`) || !strings.Contains(g.page, `value="export"`) {
		t.Error("a key that may not write is offered a change, or no table")
	}
	post(url.Values{"do": {"change"}, "slug": {"p0"}, "status": {"DRAFT"}}, 403, "This change requires")
	post(url.Values{"do": {"export"}, "all": {"1"}}, 200, "p0,P0")
	if strings.Contains(g.page, "formula") {
		t.Errorf("the table has projects that the key does not reach: %s", g.page)
	}
}
