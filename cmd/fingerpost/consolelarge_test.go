package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
)

// A proposal of any size, with any texts, has a page of moderate size; so has a list of any number of them.
func TestConsoleLargeProposals(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	files, admin, shop := consoleFiles(25)
	g := newProposalRig(t, files)
	var large strings.Builder
	projects := testrig.Size(t, 3000, 1000)
	for i := range projects {
		fmt.Fprintf(&large, "project \"p%04d\" {\n  name = \"P %d\"\n}\n\n", i, i)
	}
	g.commitAs("propose/large", map[string]string{"projects.d/large.hcl": large.String()})
	g.git(g.work, "commit", "-q", "--amend", "-m", "<script>alert(1)</script> \u202egnp.exe \x1b[31m", "-m",
		strings.Repeat("on and on ", 10_000))
	g.git(g.work, "push", "-q", "-f", "origin", "edit:refs/heads/propose/large")
	g.git(g.dir, "branch", "propose/Some/<b>Name", "propose/large")

	v := newVisitor(t, g.url)
	v.signIn(admin)
	began := time.Now()
	v.ask("/console/proposals/large", nil)
	testrig.Figure(t, "the page of a proposal with %d projects has %d kB, after %v", projects, len(v.body)>>10, time.Since(began).Round(time.Millisecond))
	v.expects(http.StatusOK, fmt.Sprintf("These are the first 400 of %d\u202f003 lines.", 4*projects/1000), "These are the first 400 of", "can be applied",
		"&lt;script&gt;alert(1)&lt;/script&gt;", "\ufffdgnp.exe")
	if len(v.body) > 200<<10 || strings.Contains(v.body, "<script>alert") || strings.ContainsAny(v.body, "\u202e\x1b") {
		t.Errorf("the page has %d bytes: %s", len(v.body), cutMiddle(v.body, 2000))
	}
	if got := g.as("admin", "", http.MethodGet, proposalsPath+"/large", ""); len(got.body) > 4<<20 {
		t.Errorf("the answer of the API has %d bytes", len(got.body))
	}
	v.ask("/console/proposals", nil)
	v.expects(http.StatusOK, "2 open proposals", "is not one of a proposal", "Some/&lt;b&gt;Name")
	for _, path := range []string{"/console/proposals/Some", "/console/proposals/..%2f..", "/console/proposals/nothing"} {
		v.ask(path, nil)
		v.expects(http.StatusNotFound)
	}
	limited := newVisitor(t, g.url)
	limited.signIn(shop)
	limited.ask("/console/proposals/large", nil)
	limited.expects(http.StatusNotFound, "it touches more than your key may see")
	limited.ask("/console/proposals", nil)
	limited.expects(http.StatusOK, "Nothing is proposed.")

	var refs strings.Builder
	small := g.commitAs("propose/small", map[string]string{"projects.d/small.hcl": plain("small", "Small")})
	for i := range testrig.Size(t, 1000, 60) {
		fmt.Fprintf(&refs, "create refs/heads/propose/n%d %s\n", i, small)
	}
	g.git(g.dir, "fetch", "-q", g.work, "edit")
	cmd := testrig.GitCommand(g.dir, "update-ref", "--stdin")
	cmd.Stdin = strings.NewReader(refs.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	for _, page := range []string{"1", "2", "99999"} {
		began := time.Now()
		v.ask("/console/proposals?page="+page, nil)
		testrig.Figure(t, "page %s of the list of %d proposals has %d kB, after %v", page, testrig.Size(t, 1000, 60),
			len(v.body)>>10, time.Since(began).Round(time.Millisecond))
		v.expects(http.StatusOK, "open proposals", "by hand", "Page ")
		if len(v.body) > 100<<10 {
			t.Errorf("page %s has %d bytes", page, len(v.body))
		}
	}
}

// The list of many projects with long names and labels stays a list, on a phone too.
func TestConsoleManyProjects(t *testing.T) {
	testrig.Thorough(t)
	program := findBrowser(t)
	files, admin, _ := consoleFiles(25)
	var many strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&many, `project "tenant-%04d-of-a-group-with-a-long-name" {
  name   = "Tenant %d of a group whose name is longer than the column"
  status = "%s"
  labels = { plan = "gold", region = "eu-central", owner_team = "customer-success", since = "2026" }
  domain "shop-%d.customers.with.a.long.name.example" { primary = true }
}
`, i, i, []string{"ACTIVE", "DRAFT", "SUSPENDED"}[i%3], i)
	}
	files["many.hcl"] = many.String()
	r := idleRig(t, t.TempDir(), files)
	r.start()
	b := newTab(t, program, r.url)
	b.signIn(admin)
	b.open("/console/projects?q=tenant")
	b.sees("all 1\u202f000+", "The best 1\u202f000 projects; more match", "active 667")
	b.look("projects-many")
}
