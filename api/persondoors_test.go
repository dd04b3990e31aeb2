package api_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"fingerpost/api"
	"fingerpost/api/console"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// The trail names the door of the console for what people do there, also through an edge, and for nobody else.
func TestConsoleDoor(t *testing.T) {
	t.Parallel()
	d := &desk{dir: t.TempDir(), console: new(console.Options)}
	d.open(t, map[string]string{"acme.hcl": "project \"acme\" {\n  name = \"Acme\"\n}\n"})
	if a := d.askBody("PUT", d.path(t, "/api/platform/projects/@acme"), d.key, `{"name":"One"}`, "X-Fingerpost-Door: console",
		"Content-Type: application/json"); a.StatusCode != 200 {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	if e := d.audit(t, d.key, "?limit=1")[0]; e["door"] != "api" || e["subject"] != nil {
		t.Errorf("a caller chooses the door: %v", e)
	}
	d.addr = d.listen(api.Platform | api.Mail | api.Console)
	b := newBrowser(d.house)
	in := b.send(signIn, url.Values{"key": {d.key}})
	cookie := []string{"Cookie", "fingerpost=" + in.Cookies()[0].Value}
	b.send("/console/projects", nil, cookie...)
	form := url.Values{"slug": {"acme"}, "status": {"SUSPENDED"}, "do": {"change"}}
	form.Set("token", regexp.MustCompile(`name="token" value="([^"]+)"`).FindStringSubmatch(b.page)[1])
	draft := b.send("/console/bulk", form, cookie...)
	saved := b.send(draft.Header.Get("Location"), url.Values{"token": form["token"], "do": {"save"}}, cookie...)
	if saved.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d, then %d\n%s", draft.StatusCode, saved.StatusCode, b.page)
	}
	if e := d.audit(t, d.key, "?limit=1")[0]; e["door"] != "console" || e["key"] != "story" || e["subject"] != nil {
		t.Errorf("a save in the console: %v", e)
	}

	a := &standIn{answer: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"}
	edge := start(t, func(o *api.Options) { o.Cluster.Edge, o.Console = a, new(console.Options) })
	edge.postRaw(t, edge.all)
	if got := a.requests(); len(got) != 1 || strings.Contains(got[0], "Door") {
		t.Errorf("the authority gets %q", got)
	}
	edge.addr = edge.listen(api.Platform | api.Mail | api.Console)
	b = newBrowser(edge)
	in = b.send(signIn, url.Values{"key": {edge.all}})
	cookie = []string{"Cookie", "fingerpost=" + in.Cookies()[0].Value}
	b.send("/console/keys", nil, cookie...)
	if got := a.requests(); !strings.Contains(got[len(got)-1], "X-Fingerpost-Door: console\r\n") {
		t.Errorf("the authority gets %q", got)
	}
}

// A person's stream follows the rules: what a rule takes away is not sent any more, and the client begins again.
func TestPersonStreams(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.apply("login.hcl", companyLogin())
	text, end := h.resolver.AddPersonKey(&resolver.Person{Login: "company", Issuer: issuerOfTests, ClientID: "fingerpost",
		Subject: "bob", Claims: catalog.Claims{"groups": []any{"shop"}}})
	s := h.events(text, "")
	d := companyLogin()
	d.Logins[0].Rules[1].Projects = []string{"globex"}
	h.apply("login.hcl", d)
	s.want("reset", "")
	h.edit(project(1, "acme", "Acme Other", catalog.StatusActive, "shop.acme.example"))
	h.edit(project(2, "globex", "Globex Other", catalog.StatusActive, "globex.example"))
	if e := s.want("project.changed", ""); !strings.Contains(e.data, `"globex"`) {
		t.Errorf("the first event is %v", e)
	}
	h.apply("login.hcl", &catalog.Declared{})
	s.ends()
	end()
}
