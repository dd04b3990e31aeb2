package api_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

func rows(a *answer) (rows []map[string]any) {
	list, _ := a.json["data"].([]any)
	for _, row := range list {
		rows = append(rows, row.(map[string]any))
	}
	return rows
}

func column(a *answer, name string) (values []string) {
	for _, row := range rows(a) {
		values = append(values, fmt.Sprint(row[name]))
	}
	return values
}

func TestProjects(t *testing.T) {
	h := start(t)
	for _, path := range []string{"/api/platform/projects/1", "/api/platform/projects/by-slug/acme"} {
		a := h.ask("GET", path, h.onlyRead)
		a.check(t, 200, "")
		body := string(a.body)
		uuid := catalog.DeriveProjectUUID("acme").String()
		want := `"data":{"id":1,"uuid":"` + uuid + `","name":"Acme Shop","slug":"acme","description":null,"status":"ACTIVE","createdAt":"`
		if !strings.Contains(body, want) {
			t.Errorf("%s: %s, want %s", path, body, want)
		}
	}
	h.ask("GET", "/api/platform/projects/by-slug/none", h.all).check(t, 404, "NOT_FOUND")
}

func TestDomainsAndSettings(t *testing.T) {
	h := start(t)
	for path, want := range map[string]string{
		"/api/platform/projects/1/domains/1002":     `{"id":1002,"projectId":1,"domain":"off.acme.example","primary":false,"active":false,"createdAt":"`,
		"/api/platform/projects/1/service-settings": `{"id":101,"projectId":1,"authEnabled":false,"mailEnabled":false,"smsEnabled":false,"auditEnabled":false},`,
		"/api/platform/projects/1/auth-settings":    `{"id":201,"projectId":1,"registrationMode":"OPEN","emailVerificationRequired":false,"phoneVerificationRequired":false,"approvalRequired":false,"inviteOnly":false,"twoFactorRequired":false},`,
	} {
		a := h.ask("GET", path, h.onlyRead)
		a.check(t, 200, "")
		if !strings.Contains(string(a.body), `"data":`+want) {
			t.Errorf("%s: %s, want %s", path, a.body, want)
		}
	}
	for _, path := range []string{"/api/platform/projects/1/domains/2000", "/api/platform/projects/99/domains/1000", "/api/platform/projects/99/domains", "/api/platform/projects/99/auth-settings", "/api/platform/projects/99/service-settings"} {
		h.ask("GET", path, h.all).check(t, 404, "NOT_FOUND")
	}
}

func TestPathIDs(t *testing.T) {
	h := start(t)
	for _, id := range []string{"0", "-1", "+1", "1.0", "1e3", "0x1", "abc", "resolveX", "%31", "9007199254740992", "99999999999999999999", "1%20", "١"} {
		for path, field := range map[string]string{
			"/api/platform/projects/" + id:                       "id",
			"/api/platform/projects/" + id + "/domains":          "id",
			"/api/platform/projects/" + id + "/service-settings": "id",
			"/api/platform/projects/" + id + "/auth-settings":    "id",
			"/api/platform/projects/1/domains/" + id:             "domainId",
			"/api/platform/projects/" + id + "/domains/" + id:    "projectId domainId",
		} {
			a := h.ask("GET", path, h.all)
			a.check(t, 400, "VALIDATION_ERROR")
			if got := strings.Join(a.fields(), " "); got != field {
				t.Errorf("%s: details on %q, want %q", path, got, field)
			}
		}
	}
	h.ask("GET", "/api/platform/projects/9007199254740991", h.all).check(t, 404, "NOT_FOUND")
}

func TestListQuery(t *testing.T) {
	h := start(t)
	for _, c := range []struct{ query, fields string }{
		{"page=0", "page"}, {"page=-1", "page"}, {"page=x", "page"}, {"page=", "page"}, {"page=1.5", "page"}, {"page=+1", "page"}, {"page=99999999999999999999", "page"},
		{"limit=0", "limit"}, {"limit=101", "limit"}, {"limit=%zz", "limit"}, {"limit=1&limit=2", "limit"}, {"limit=1&limit=2&limit=3", "limit"},
		{"sort=nothing", "sort"}, {"sort=", "sort"}, {"sort=ID", "sort"}, {"order=up", "order"}, {"order=DESC", "order"}, {"order=", "order"},
		{"page=0&limit=0&sort=x&order=y", "page limit sort order"},
	} {
		for _, path := range []string{"/api/platform/projects", "/api/platform/projects/1/domains"} {
			a := h.ask("GET", path+"?"+c.query, h.all)
			a.check(t, 400, "VALIDATION_ERROR")
			if got := strings.Join(a.fields(), " "); got != c.fields {
				t.Errorf("%s: details on %q, want %q", c.query, got, c.fields)
			}
		}
	}
	a := h.ask("GET", "/api/platform/projects/x/domains?page=0", h.all)
	if got := strings.Join(a.fields(), " "); got != "id page" {
		t.Errorf("path and query: details on %q", got)
	}
}

func TestProjectList(t *testing.T) {
	h := start(t)
	for _, c := range []struct{ query, slugs, meta string }{
		{"", "acme globex initech", ""},
		{"?order=desc", "initech globex acme", ""},
		{"?sort=name&order=desc", "initech globex acme", ""},
		{"?sort=status", "acme globex initech", ""},
		{"?unknown=1", "acme globex initech", ""},
		{"?page=1", "acme globex initech", `"meta":{"total":3,"page":1,"limit":10,"totalPages":1},`},
		{"?limit=2", "acme globex", `"meta":{"total":3,"page":1,"limit":2,"totalPages":2},`},
		{"?limit=2&page=2", "initech", `"meta":{"total":3,"page":2,"limit":2,"totalPages":2},`},
		{"?limit=2&page=2&order=desc", "acme", `"meta":{"total":3,"page":2,"limit":2,"totalPages":2},`},
		{"?limit=2&page=3", "", `"meta":{"total":3,"page":3,"limit":2,"totalPages":2},`},
		{"?limit=100&page=2147483648", "", `"meta":{"total":3,"page":2147483648,"limit":100,"totalPages":1},`},
	} {
		a := h.ask("GET", "/api/platform/projects"+c.query, h.all)
		a.check(t, 200, "")
		if got := strings.Join(column(a, "slug"), " "); got != c.slugs {
			t.Errorf("%s: %q, want %q", c.query, got, c.slugs)
		}
		if !strings.Contains(string(a.body), `],`+c.meta+`"timestamp":"`) {
			t.Errorf("%s: meta of %s, want %s", c.query, a.body, c.meta)
		}
		// A key of one project sees that one.
		a = h.ask("GET", "/api/platform/projects"+c.query, h.acme)
		if got := column(a, "slug"); len(got) > 1 || len(got) == 1 && got[0] != "acme" {
			t.Errorf("%s: a key of acme sees %v", c.query, got)
		}
	}
	a := h.ask("GET", "/api/platform/projects?page=1", h.acme)
	if total := a.json["meta"].(map[string]any)["total"]; total != 1.0 {
		t.Errorf("a key of acme is told of %v projects", total)
	}
}

func TestDomainList(t *testing.T) {
	h := start(t)
	a := h.ask("GET", "/api/platform/projects/1/domains?sort=domain&limit=2", h.acme)
	a.check(t, 200, "")
	if got := column(a, "domain"); !slices.Equal(got, []string{"*.acme.example", "off.acme.example"}) {
		t.Errorf("%v", got)
	}
	if got := column(h.ask("GET", "/api/platform/projects/1/domains", h.acme), "id"); !slices.Equal(got, []string{"1000", "1001", "1002"}) {
		t.Errorf("%v", got)
	}
	if got := h.ask("GET", "/api/platform/projects/3/domains?page=2", h.all); !strings.Contains(string(got.body), `"data":[],"meta":{"total":1,"page":2,"limit":10,"totalPages":1}`) {
		t.Errorf("%s", got.body)
	}
}

// A long list without paging comes whole, in pieces, without a length; a reader that stops early harms nobody.
func TestLongListIsStreamed(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	h := start(t)
	d := &catalog.Declared{}
	many := testrig.Part(5000)
	for i := range int64(many) {
		slug := fmt.Sprintf("p%05d", i)
		d.Projects = append(d.Projects, project(10000+i, slug, strings.Repeat("n", 100), catalog.StatusActive))
	}
	h.apply("many.hcl", d)
	a := h.ask("GET", "/api/platform/projects", h.all)
	a.check(t, 200, "")
	if got := len(rows(a)); got != many+3 || a.ContentLength >= 0 {
		t.Errorf("%d rows, length %d", got, a.ContentLength)
	}
	request := "GET /api/platform/projects HTTP/1.1\r\nHost: x\r\nX-PLATFORM-KEY: " + h.all + "\r\n\r\n"
	for range 20 {
		w := h.dial()
		w.send(request)
		if _, err := io.CopyN(io.Discard, w, 100); err != nil {
			t.Fatal(err)
		}
		w.Close()
	}
	w := h.dial()
	defer w.Close()
	w.send(request + request)
	for range 2 {
		if got := len(rows(w.answer("GET"))); got != many+3 {
			t.Errorf("%d rows", got)
		}
	}
}

// Single resources have a strong tag that depends on their content and not on when they were first seen.
func TestETags(t *testing.T) {
	h, twin := start(t), start(t)
	paths := []string{"/api/platform/projects/1", "/api/platform/projects/by-slug/globex", "/api/platform/projects/1/domains/1000", "/api/platform/projects/1/service-settings", "/api/platform/projects/1/auth-settings"}
	seen := map[string]string{}
	for _, path := range paths {
		a, b := h.ask("GET", path, h.all), twin.ask("GET", path, twin.all)
		tag := a.Header.Get("ETag")
		if tag == "" || strings.HasPrefix(tag, "W/") || tag != b.Header.Get("ETag") || seen[tag] != "" {
			t.Errorf("%s: tags %q and %q; %q has the first too", path, tag, b.Header.Get("ETag"), seen[tag])
		}
		seen[tag] = path
		not := h.ask("GET", path, h.all, "If-None-Match: "+tag)
		if not.StatusCode != 304 || len(not.body) > 0 || not.Header.Get("ETag") != tag {
			t.Errorf("%s: %d %v", path, not.StatusCode, not.Header)
		}
		h.ask("GET", path, h.all, `If-None-Match: "x"`).check(t, 200, "")
		h.ask("GET", path, h.onlyMail, "If-None-Match: "+tag).check(t, 403, "FORBIDDEN")
	}
	d := h.fixture()
	d.Projects[0].Project.Name = "New name"
	old := h.ask("GET", paths[0], h.all).Header.Get("ETag")
	h.apply("fixture.hcl", d)
	h.ask("GET", paths[0], h.all, "If-None-Match: "+old).check(t, 200, "")
}
