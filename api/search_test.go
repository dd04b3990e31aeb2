package api_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

const (
	projectsPath = "/api/platform/projects"
	domainsPath  = "/api/platform/domains"
)

func TestSearchProjects(t *testing.T) {
	t.Parallel()
	h := start(t)
	f := func(query, all, acme string) {
		t.Helper()
		for key, want := range map[string]string{h.all: all, h.acme: acme} {
			a := h.ask("GET", projectsPath+"?"+query, key)
			a.check(t, 200, "")
			if got := strings.Join(column(a, "slug"), " "); got != want {
				t.Errorf("%s: %q, want %q", query, got, want)
			}
		}
	}
	f("q=acme", "acme", "acme")
	f("q=ACME+Sh", "acme", "acme")
	f("q=.example", "acme globex initech", "acme")
	f("q=i", "initech", "") // a prefix
	f("q=e", "acme globex initech", "acme")
	f("q=XN--", "globex", "")
	f("q=globex&status=DRAFT", "globex", "")
	f("q=globex&status=ACTIVE", "", "")
	f("status=SUSPENDED", "initech", "")
	f("status=ACTIVE&limit=5", "acme", "acme")
	f("label.plan=gold", "", "")
	f("q=%25", "", "")
	f("q=*", "acme", "acme") // *.acme.example
	f("q=a*e", "", "")
	f("q=_", "", "")
	f("q=.example&order=desc", "initech globex acme", "acme")
	f("q=.example&sort=name&order=desc", "initech globex acme", "acme")
	f("q=.example&limit=1&page=2", "globex", "")
	f("q="+strings.Repeat("%C3%A4", 256), "", "")
	for key, want := range map[string]string{h.all: "3", h.acme: "1"} {
		a := h.ask("GET", projectsPath+"?q=.example&limit=1", key)
		if meta := fmt.Sprint(a.json["meta"]); !strings.Contains(meta, "total:"+want) {
			t.Errorf("meta %s, want a total of %s", meta, want)
		}
	}
	if a := h.ask("GET", projectsPath+"?q=acme", h.all); a.json["meta"] != nil {
		t.Errorf("a list without a page has meta: %s", a.body)
	}
	h.ask("GET", projectsPath+"?q=acme", h.onlyResolve).check(t, 403, "FORBIDDEN")
	h.ask("GET", domainsPath+"?q=acme", h.onlyWrite).check(t, 403, "FORBIDDEN")
	h.ask("GET", domainsPath, "").check(t, 401, "UNAUTHORIZED")
}

func TestSearchLabels(t *testing.T) {
	t.Parallel()
	h := start(t)
	if got := rows(h.ask("GET", projectsPath+"?label.plan=gold", h.all)); len(got) != 0 {
		t.Errorf("%v", got)
	}
	d := &catalog.Declared{}
	for i, labels := range [][]catalog.Label{
		{{Name: "plan", Value: "gold"}, {Name: "shard", Value: "EU-1"}},
		{{Name: "plan", Value: "golden age"}},
		{{Name: "note", Value: "= 100 %, *"}, {Name: "plan", Value: "gold"}},
	} {
		p := project(int64(100+i), fmt.Sprintf("p%d", i), "P", catalog.StatusDraft)
		p.Project.Labels = labels
		d.Projects = append(d.Projects, p)
	}
	h.apply("labels.hcl", d)
	f := func(query, want string) {
		t.Helper()
		a := h.ask("GET", projectsPath+"?"+query, h.all)
		a.check(t, 200, "")
		if got := strings.Join(column(a, "slug"), " "); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
		if got := rows(h.ask("GET", projectsPath+"?"+query, h.acme)); len(got) != 0 {
			t.Errorf("%s: a key of acme sees %v", query, got)
		}
	}
	f("label.plan=gold", "p0 p2")
	f("label.plan=Gold", "")
	f("label.plan=", "")
	f("label.plan=gold&label.shard=EU-1", "p0")
	f("label.shard=EU-1&label.plan=gold&q=p&status=ACTIVE", "")
	f("label.plan=golden+age", "p1")
	f("label.note=%3D+100+%25%2C+*", "p2")
	f("label%2Eplan=gold&q=p2", "p2")
	f("q=GOLD", "p0 p1 p2")
	f("q=eu-1&status=DRAFT", "p0")
	d.Projects[0].Project.Labels = nil
	h.apply("labels.hcl", d)
	f("label.plan=gold", "p2")
	f("q=eu-1", "")
}

func TestSearchDomains(t *testing.T) {
	t.Parallel()
	h := start(t)
	f := func(query, all, acme string) {
		t.Helper()
		for key, want := range map[string]string{h.all: all, h.acme: acme} {
			a := h.ask("GET", domainsPath+"?"+query, key)
			a.check(t, 200, "")
			if got := strings.Join(column(a, "domain"), " "); got != want {
				t.Errorf("%s: %q, want %q", query, got, want)
			}
		}
	}
	const acmes = "shop.acme.example *.acme.example off.acme.example"
	f("", acmes+" globex.example off.globex.example xn--bcher-kva.example initech.example", acmes)
	f("limit=2&page=2", "off.acme.example globex.example", "off.acme.example")
	f("q=off", "off.acme.example off.globex.example", "off.acme.example")
	f("q=GLOBEX", "globex.example off.globex.example", "")
	f("q=*.", "*.acme.example", "*.acme.example")
	f("q=off&sort=domain&order=desc", "off.globex.example off.acme.example", "off.acme.example")
	f("order=desc&limit=1", "initech.example", "off.acme.example")
	f("q=nowhere", "", "")
	f("status=ACTIVE&q=initech", "initech.example", "") // not a parameter of this list
	a := h.ask("GET", domainsPath+"?q=shop", h.all)
	want := `"data":[{"id":1000,"projectId":1,"domain":"shop.acme.example","primary":true,"active":true,"createdAt":"`
	if !strings.Contains(string(a.body), want) {
		t.Errorf("%s, want %s", a.body, want)
	}
}

func TestSearchBadInput(t *testing.T) {
	t.Parallel()
	h := start(t)
	f := func(query, fields string) {
		t.Helper()
		a := h.ask("GET", projectsPath+"?"+query, h.all)
		a.check(t, 400, "VALIDATION_ERROR")
		if got := strings.Join(a.fields(), " "); got != fields {
			t.Errorf("%.60s: details on %q, want %q", query, got, fields)
		}
	}
	f("q=", "q")
	f("q=a&q=b", "q")
	f("q=%zz", "q")
	f("q=%ff", "q")
	f("q=%c3", "q")
	f("q=a%00b", "q")
	f("q=a%0Ab", "q")
	f("q="+strings.Repeat("a", 257), "q")
	f("q="+strings.Repeat("a", 1024), "q")
	f("status=", "status")
	f("status=active", "status")
	f("status=ACTIVE&status=DRAFT", "status")
	f("label.=x", "label.")
	f("label.Plan=x", "label.Plan")
	f("label.a-b=x", "label.a-b")
	f("label.plan=a&label.plan=b", "label.plan")
	f("label.plan=%ff", "label.plan")
	f("label.plan=%0a", "label.plan")
	f("label.plan="+strings.Repeat("a", 257), "label.plan")
	f("q=&status=x&label.X=1&page=0", "q status label.X page")
	many := url.Values{}
	for i := range catalog.MaxLabels + 1 {
		many.Set(fmt.Sprintf("label.l%d", i), "x")
	}
	f(many.Encode(), "label")
	a := h.ask("GET", projectsPath+"?status=x", h.all)
	if !strings.Contains(string(a.body), "must be one of DRAFT, ACTIVE, SUSPENDED") {
		t.Errorf("%s", a.body)
	}
	h.ask("GET", domainsPath+"?q=", h.all).check(t, 400, "VALIDATION_ERROR")
	h.ask("POST", domainsPath, h.all).check(t, 405, "METHOD_NOT_ALLOWED")
}

// TestSearchFollowsWrites: a search has every change that was acknowledged, and a long result comes whole.
func TestSearchFollowsWrites(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	h := start(t)
	if got := rows(h.ask("GET", projectsPath+"?q=shop-", h.all)); len(got) != 0 {
		t.Fatalf("%v", got)
	}
	d := &catalog.Declared{}
	const many = 1500
	for i := range int64(many) {
		slug := fmt.Sprintf("shop-%04d", i)
		p := project(10_000+i, slug, "Shop", catalog.StatusDraft, slug+".example")
		d.Projects = append(d.Projects, p)
	}
	h.apply("many.hcl", d)
	for path, want := range map[string]int{
		projectsPath + "?status=DRAFT": many + 1, projectsPath + "?q=shop-": 1000, projectsPath + "?q=shop-1": 500,
		domainsPath: many + 7, domainsPath + "?q=P-14": 100, domainsPath + "?sort=domain": many + 7,
	} {
		if got := len(rows(h.ask("GET", path, h.all))); got != want {
			t.Errorf("%s: %d rows, want %d", path, got, want)
		}
	}
	a := h.ask("GET", projectsPath+"?q=shop-&limit=100&page=10", h.all)
	if got := column(a, "slug"); len(got) != 100 || got[99] != "shop-0999" {
		t.Errorf("the last page: %v", got)
	}
	h.ask("HEAD", domainsPath+"?q=shop", h.all).check(t, 200, "")
	h.apply("many.hcl", &catalog.Declared{})
	if got := rows(h.ask("GET", domainsPath+"?q=shop-", h.all)); len(got) != 0 {
		t.Errorf("%d domains of projects that have gone", len(got))
	}
}
