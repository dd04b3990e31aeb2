package api_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// createProject posts a project.
func (d *desk) createProject(body string, headers ...string) *answer {
	return d.askBody("POST", platformProjects, d.key, body, append(headers, "Content-Type: application/json")...)
}

// A new project and its domains are one write of one file.
func TestNewProjectWithDomains(t *testing.T) {
	d := newDesk(t, map[string]string{"acme.hcl": "project \"acme\" {\n  name = \"Acme\"\n  domain \"shop.acme.example\" {}\n  domain \"*.wild.example\" {}\n}\n"})
	was := d.resolver.Generation()
	a := d.createProject(`{"name":"Café","domains":["Bücher.Example.","*.cafe.example","x.wild.example"]}`)
	a.check(t, http.StatusCreated, "")
	if now := d.resolver.Generation(); now != was+1 {
		t.Errorf("%d generations have passed, not one", now-was)
	}
	uuid, _ := a.data()["uuid"].(string)
	d.fileHas(t, "cafe.hcl", fmt.Sprintf("project \"cafe\" {\n  name = \"Café\"\n  uuid = %q\n\n  domain \"xn--bcher-kva.example\" { primary = true }\n"+
		"  domain \"*.cafe.example\" {}\n  domain \"x.wild.example\" {}\n}\n", uuid))
	for _, domain := range []string{"xn--bcher-kva.example", "any.cafe.example", "x.wild.example"} {
		d.ask("GET", "/api/platform/projects/resolve?domain="+domain, d.key).check(t, 200, "")
	}
	// Each object has its entry in the trail, of one generation.
	actions := map[string]int{}
	for _, e := range d.audit(t, d.key, fmt.Sprintf("?projectId=%.0f", a.data()["id"])) {
		actions[fmt.Sprint(e["action"], " ", e["generation"])]++
	}
	if len(actions) != 2 || actions[fmt.Sprint("domain.create ", was+1)] != 3 || actions[fmt.Sprint("project.create ", was+1)] != 1 {
		t.Errorf("the trail has %v", actions)
	}

	// A dry run shows both, warns about the wildcard of another project, and writes nothing.
	dry := d.askBody("POST", platformProjects+"?dryRun=1", d.key, `{"name":"Dry","domains":["dry.example","y.wild.example"]}`, "Content-Type: application/json")
	dry.check(t, 200, "")
	diff, _ := dry.data()["diff"].(string)
	if !strings.Contains(diff, `+  domain "dry.example" { primary = true }`) || !strings.Contains(string(dry.body), "would lie above") {
		t.Errorf("a dry run: %s", dry.body)
	}
	d.ask("GET", platformProjects+"/by-slug/dry", d.key).check(t, 404, "NOT_FOUND")
	for body, want := range map[string]string{`{"name":"None","domains":[]}`: "none", `{"name":"Without"}`: "without"} {
		d.createProject(body).check(t, http.StatusCreated, "")
		text, err := os.ReadFile(filepath.Join(d.dir, want+".hcl"))
		if err != nil || strings.Contains(string(text), "domain") {
			t.Errorf("%s: %s, %v", body, text, err)
		}
	}
}

// Both or neither: a domain that cannot be had leaves no project, no file and no entry.
func TestNewProjectRefused(t *testing.T) {
	d := newDesk(t, map[string]string{"acme.hcl": "project \"acme\" {\n  name = \"Acme\"\n  domain \"shop.acme.example\" {}\n}\n"})
	before, was := d.files(t), d.resolver.Generation()
	many := `"d0.example"` + strings.Repeat(`,"d1.example"`, 100)
	for body, want := range map[string]string{
		`{"name":"New","domains":["free.example","SHOP.acme.example"]}`:      "409 CONFLICT domains[1]",
		`{"name":"Acme","domains":["shop.acme.example"]}`:                    "409 CONFLICT domains[0] slug",
		`{"name":"New","domains":["a.example","a.example."]}`:                "400 VALIDATION_ERROR domains[1]",
		`{"name":"","slug":"UP","domains":["-x.example",7,null,"http://x"]}`: "400 VALIDATION_ERROR domains[0] domains[1] domains[2] domains[3] name slug",
		`{"name":"New","domains":"a.example"}`:                               "400 VALIDATION_ERROR domains",
		`{"name":"New","domains":null}`:                                      "400 VALIDATION_ERROR domains",
		`{"name":"New","domains":[` + many + `]}`:                            "400 VALIDATION_ERROR domains",
	} {
		a := d.createProject(body, "Prefer: handling=strict")
		if got := fmt.Sprint(a.StatusCode, " ", a.code(), " ", strings.Join(sorted(a.fields()), " ")); got != want {
			t.Errorf("%s: %s, want %s: %s", body[:min(len(body), 80)], got, want, a.body)
		}
	}
	d.compare(t, before)
	if now := d.resolver.Generation(); now != was {
		t.Errorf("refused writes have made %d generations", now-was)
	}
}

// Of several projects that want one domain at the same time one gets it; of the others nothing is there.
func TestNewProjectRace(t *testing.T) {
	d := newDesk(t, nil)
	var made atomic.Int32
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			switch a := d.createProject(fmt.Sprintf(`{"name":"P %d","domains":["one.example","own%d.example"]}`, n, n)); a.StatusCode {
			case http.StatusCreated:
				made.Add(1)
			case http.StatusConflict:
			default:
				t.Errorf("%d %s", a.StatusCode, a.body)
			}
		})
	}
	all.Wait()
	files := 0
	for name := range d.files(t) {
		if strings.HasPrefix(name, "p-") {
			files++
		}
	}
	if made.Load() != 1 || files != 1 {
		t.Errorf("%d projects were made, %d files", made.Load(), files)
	}
	d.compareFresh(t)
}
