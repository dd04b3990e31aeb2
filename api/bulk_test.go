package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fingerpost/configsrc/hcledit"
	"fingerpost/resolver/catalog"
)

const bulkURL = "/api/platform/projects/bulk"

// bulkFiles are projects in files of their own and together, with comments.
func bulkFiles() map[string]string {
	files := map[string]string{"two.hcl": "# two in one file\nproject \"one\" {\n  name = \"One\" # the first\n}\n\nproject \"two\" {\n  name   = \"Two\"\n" +
		"  labels = { plan = \"basic\", shard = \"eu\" }\n}\n"}
	for i := range 5 {
		files[fmt.Sprintf("p%d.hcl", i)] = fmt.Sprintf("# file %d\nproject \"p%d\" {\n  name = \"P%d\"\n\n  domain \"p%d.example\" {}\n}\n", i, i, i, i)
	}
	return files
}

// TestBulk: status and labels of several projects change in one write; labels merge, comments stay, and each project has
// its entry in the audit trail.
func TestBulk(t *testing.T) {
	t.Parallel()
	d := newDesk(t, bulkFiles())
	before := d.resolver.Generation()
	body := fmt.Sprintf(`{"projects":["one","two","p0",%d],"set":{"status":"SUSPENDED","labels":{"plan":"gold","shard":null}}}`, d.projectID(t, "p1"))
	dry := d.askBody("POST", bulkURL+"?dryRun=1", d.key, body)
	dry.check(t, 200, "")
	for _, want := range []string{"--- a/two.hcl", "--- a/p0.hcl", "--- a/p1.hcl"} {
		if strings.Count(dry.data()["diff"].(string), want) != 1 {
			t.Errorf("%s: %s", want, dry.body)
		}
	}
	d.compare(t, bulkFiles())
	a := d.askBody("POST", bulkURL, d.key, body)
	a.check(t, 200, "")
	var slugs []string
	for _, row := range a.json["data"].([]any) {
		slugs = append(slugs, row.(map[string]any)["slug"].(string))
	}
	if !slices.Equal(slugs, []string{"one", "two", "p0", "p1"}) || d.resolver.Generation() != before+1 {
		t.Errorf("%v at generation %d, before %d", slugs, d.resolver.Generation(), before)
	}
	want := bulkFiles()
	want["two.hcl"] = "# two in one file\nproject \"one\" {\n  name   = \"One\" # the first\n  status = \"SUSPENDED\"\n  labels = { plan = \"gold\" }\n}\n\n" +
		"project \"two\" {\n  name   = \"Two\"\n  labels = { plan = \"gold\" }\n  status = \"SUSPENDED\"\n}\n"
	for _, i := range []string{"0", "1"} {
		want["p"+i+".hcl"] = "# file " + i + "\nproject \"p" + i + "\" {\n  name   = \"P" + i + "\"\n  status = \"SUSPENDED\"\n  labels = { plan = \"gold\" }\n\n  domain \"p" + i + ".example\" {}\n}\n"
	}
	d.compare(t, want)
	if entries := d.audit(t, d.key, "?action=project.update"); len(entries) != 4 {
		t.Errorf("%d entries: %v", len(entries), entries)
	}
	d.ask("GET", "/api/platform/projects/resolve?domain=p0.example", d.key).check(t, 403, "PROJECT_SUSPENDED")
	at := d.resolver.Generation()
	if d.askBody("POST", bulkURL, d.key, body).check(t, 200, ""); d.resolver.Generation() != at {
		t.Error("the same again has changed something")
	}
	d.compare(t, want)
	d.compareFresh(t)
}

// TestBulkRefused: one project that cannot be changed, and nothing is; every problem is told at once.
func TestBulkRefused(t *testing.T) {
	t.Parallel()
	files := bulkFiles()
	limited := catalog.Key{Name: "limited", Allow: catalog.MayWrite, Projects: []string{"p0", "one"}}
	text := limited.Renew()
	files["limited.hcl"] = hcledit.KeyBlock(&limited)
	files["broken.hcl"] = "project \"broken\" {\n  name = \"B\"\n  nonsense = 1\n}\n"
	labels := ""
	for i := range 32 {
		labels += fmt.Sprintf("l%d = \"x\", ", i)
	}
	files["full.hcl"] = "project \"full\" {\n  name = \"F\"\n  labels = { " + strings.TrimSuffix(labels, ", ") + " }\n}\n"
	d := newDesk(t, files)
	many := strings.TrimSuffix(strings.Repeat(`"p0",`, 1001), ",")
	for _, c := range []struct {
		key, projects, set string
		status             int
		fields             string
	}{
		{d.key, `"p0","nobody",3`, `"status":"DRAFT"`, 404, "projects[1] projects[2]"},
		{d.key, `"p0","p1","p0"`, `"status":"DRAFT"`, 400, "projects[2]"},
		{d.key, `"p0","x y",true,0`, `"status":"OFF","labels":{"A":"1","b":2},"name":"x"`, 400, "projects[1] projects[2] projects[3] set.status set.labels.A set.labels.b set.name"},
		{d.key, ``, `"status":"DRAFT"`, 400, "projects"},
		{d.key, many, `"status":"DRAFT"`, 400, "projects"},
		{d.key, `"p0"`, ``, 400, "set"},
		{d.key, `"p0"`, `"labels":{}`, 400, "set"},
		{d.key, `"p0","broken"`, `"status":"DRAFT"`, 404, "projects[1]"},
		{d.key, `"p0","full"`, `"labels":{"one_more":"x"}`, 400, "projects[1]"},
		{text, `"p0","p1"`, `"status":"ACTIVE"`, 403, ""},
	} {
		a := d.askBody("POST", bulkURL, c.key, `{"projects":[`+c.projects+`],"set":{`+c.set+`}}`)
		if got := strings.Join(a.fields(), " "); a.StatusCode != c.status || got != c.fields {
			t.Errorf("%.60s %s: %d %q, want %d %q: %.300s", c.projects, c.set, a.StatusCode, got, c.status, c.fields, a.body)
		}
	}
	d.compare(t, files)
	dry := d.askBody("POST", bulkURL+"?dryRun=1", text, `{"projects":["p0","one"],"set":{"status":"ACTIVE"}}`)
	dry.check(t, 200, "")
	if diff := dry.data()["diff"].(string); !strings.Contains(diff, "p0.hcl") || !strings.Contains(diff, "two.hcl") || strings.Contains(diff, "Two") {
		t.Errorf("a limited key is shown %s", diff)
	}
	d.askBody("POST", bulkURL, text, `{"projects":["p0","one"],"set":{"status":"ACTIVE"}}`).check(t, 200, "")
}
