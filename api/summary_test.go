package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// A page of summaries says what a list for people shows, from the values in force.
func TestProjectSummaries(t *testing.T) {
	smtp := func(more string) string {
		return "  smtp_config {\n    host = \"mail.example\"\n    from_email = \"a@b.example\"\n" + more + "  }\n"
	}
	const on, off = "  service_settings { mail_enabled = true }\n", "  service_settings { mail_enabled = false }\n"
	limited, key := keyFile("limited", "allow = [\"read\"]\n  projects = [\"beta\"]")
	d := newDesk(t, map[string]string{
		"alpha.hcl": "project \"alpha\" {\n  name = \"Alpha\"\n  labels = { plan = \"gold\", a = \"\\\"<b>\" }\n" +
			"  domain \"a.alpha.example\" {}\n  domain \"b.alpha.example\" { primary = true }\n" + on + smtp("") + "}\n",
		"team/many.hcl": "project \"beta\" {\n  name = \"Beta\"\n" + off + smtp("") + "}\n" +
			"project \"gamma\" {\n  name = \"Gamma\"\n  domain \"z.gamma.example\" {}\n  domain \"m.gamma.example\" { active = false }\n" + on + "}\n" +
			"project \"delta\" {\n  name = \"Delta\"\n" + on + smtp("    active = false\n") + "}\n",
		"limited.hcl": key,
	})
	summaries := func(key, query string) (list []string) {
		t.Helper()
		a := d.ask("GET", "/api/platform/projects?view=summary&"+query, key)
		a.check(t, 200, "")
		for _, row := range rows(a) {
			labels, err := json.Marshal(row["labels"])
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, fmt.Sprint(row["slug"], " ", string(labels), " ", row["primaryDomain"], " ", row["domainCount"], " ", row["mail"], " ", row["file"]))
		}
		return list
	}
	same := func(what string, got []string, want ...string) {
		t.Helper()
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s:\n%s\nwant:\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	alpha := `alpha {"a":"\"\u003cb\u003e","plan":"gold"} b.alpha.example 2 ON alpha.hcl`
	beta, gamma := `beta {} <nil> 0 OFF team/many.hcl`, `gamma {} m.gamma.example 2 NO_SERVER team/many.hcl`
	delta := `delta {} <nil> 0 NO_SERVER team/many.hcl`
	same("by name", summaries(d.key, "page=1&sort=name"), alpha, beta, delta, gamma)
	same("a page", summaries(d.key, "page=2&limit=1&sort=slug"), beta)
	same("a search", summaries(d.key, "q=gamma&limit=5"), gamma)
	same("by a label", summaries(d.key, "label.plan=gold&limit=5"), alpha)
	same("a key of one project", summaries(limited, "page=1"), beta)
	same("past the end", summaries(d.key, "page=9"))

	// The defaults block is in force where a project says nothing.
	d.save(t, map[string]string{"defaults.hcl": "defaults {\n" + strings.ReplaceAll(smtp(""), "\n  ", "\n") + on + "}\n"})
	d.reload(t)
	same("with defaults", summaries(d.key, "page=1&sort=name"), alpha, beta, delta, strings.Replace(gamma, "NO_SERVER", "ON", 1))

	for query, fields := range map[string]string{"view=summary": "view", "view=full&page=1": "view", "view=&page=1": "view",
		"view=summary&view=summary&page=1": "view", "view=summary&q=acme": "view", "view=nonsense&page=0&sort=x": "view page sort"} {
		a := d.ask("GET", "/api/platform/projects?"+query, d.key)
		a.check(t, 400, "VALIDATION_ERROR")
		if got := strings.Join(a.fields(), " "); got != fields {
			t.Errorf("?%s: details on %q, want %q", query, got, fields)
		}
	}
	if plain := d.ask("GET", "/api/platform/projects?page=1", d.key); strings.Contains(string(plain.body), "primaryDomain") {
		t.Errorf("without view: %s", plain.body)
	}
}
