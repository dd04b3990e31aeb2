package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"fingerpost/api"
	"fingerpost/api/console"
	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// Slugs that are made from names keep the letters of names with accents and umlauts.
func TestSlugsOfNames(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	m := newMatrix(t)
	for name, want := range map[string]string{
		"Müller & Söhne GmbH": "muller-sohne-gmbh", "Café Zürich": "cafe-zurich", "ÄÖÜ": "aou", "Straße 7": "strasse-7",
		"Łódź": "lodz", "Smørrebrød & Æbler": "smorrebrod-aebler", "Plain name": "plain-name", "ﬁngerpost": "fingerpost",
	} {
		a := m.askBody("POST", "/api/platform/projects", m.key, `{"name":"`+name+`"}`)
		a.check(t, 201, "")
		if !strings.Contains(string(a.body), `"slug":"`+want+`"`) {
			t.Errorf("%s: %s, want the slug %s", name, a.body, want)
		}
	}
	m.askBody("POST", "/api/platform/projects", m.key, `{"name":"漢字"}`).check(t, 400, "VALIDATION_ERROR")
}

// What is created comes with its ETag, which the next write may give.
func TestCreatedHasItsETag(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	m := newMatrix(t)
	made := m.askBody("POST", "/api/platform/projects", m.key, `{"name":"Tagged"}`)
	made.check(t, 201, "")
	at := made.Header.Get("Location")
	if tag := made.Header.Get("ETag"); tag == "" || tag != m.ask("GET", at, m.key).Header.Get("ETag") {
		t.Errorf("a project's ETag is %q", tag)
	}
	m.askBody("PUT", at, m.key, `{"name":"Tagged again"}`, "If-Match: "+made.Header.Get("ETag")).check(t, 200, "")
	made = m.askBody("POST", at+"/domains", m.key, `{"domain":"tagged.example"}`)
	made.check(t, 201, "")
	if tag := made.Header.Get("ETag"); tag == "" || tag != m.ask("GET", made.Header.Get("Location"), m.key).Header.Get("ETag") {
		t.Errorf("a domain's ETag is %q", tag)
	}
}

// A wrong action is answered with the right ones.
func TestAuditActionIsChecked(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	m := newMatrix(t)
	a := m.ask("GET", "/api/platform/audit?action=nope", m.key)
	a.check(t, 400, "VALIDATION_ERROR")
	actions := slices.Clone(catalog.AuditOthers)
	for _, noun := range catalog.AuditObjects {
		if !strings.Contains(string(a.body), noun) {
			t.Errorf("the answer does not name %s: %s", noun, a.body)
		}
		actions = append(actions, noun+".create", noun+".update", noun+".delete")
	}
	for _, action := range actions {
		if slices.Contains(catalog.AuditOthers, action) && !strings.Contains(string(a.body), action) {
			t.Errorf("the answer does not name %s: %s", action, a.body)
		}
		m.ask("GET", "/api/platform/audit?action="+action, m.key).check(t, 200, "")
	}
	m.ask("GET", "/api/platform/audit?action=defaults.create", m.key).check(t, 400, "VALIDATION_ERROR")
}

// Whether there is git is not told to a key that may not write, and a bad name is told first.
func TestApplyNeedsWriteFirst(t *testing.T) {
	h := start(t)
	for path, method := range map[string]string{"/apply": "POST", "": "DELETE", "/update": "POST", "/approve": "POST"} {
		path = "/api/platform/proposals/NAME" + path
		h.ask(method, strings.Replace(path, "NAME", "x", 1), h.onlyRead).check(t, 403, "FORBIDDEN")
		h.ask(method, strings.Replace(path, "NAME", "X", 1), h.onlyRead).check(t, 400, "VALIDATION_ERROR")
		h.ask(method, strings.Replace(path, "NAME", "x", 1), h.all).check(t, 409, "GIT_NOT_ENABLED")
	}
}

// The address alone leads a browser to the console, and tells others what there is.
func TestRootTellsWhatThereIs(t *testing.T) {
	t.Parallel()
	h := start(t, func(o *api.Options) { o.Console = new(console.Options) })
	const browser, curl = "Accept: text/html,application/xhtml+xml,*/*;q=0.8", "Accept: */*"
	at := func(services api.Services) *house {
		on := h.in(t)
		on.addr = h.listen(services)
		return on
	}
	plain, both, alone := h, at(api.Platform|api.Mail|api.Console), at(api.Console)
	tells := func(h *house, path, accept string, console, description bool) {
		t.Helper()
		a := h.ask("GET", path, "", accept)
		a.check(t, http.StatusNotFound, "NOT_FOUND")
		if strings.Contains(string(a.body), "/console/") != console || strings.Contains(string(a.body), "/api/openapi.yaml") != description {
			t.Errorf("%s with %s: %s", path, accept, a.body)
		}
	}
	tells(plain, "/", browser, false, true)
	tells(plain, "/", curl, false, true)
	tells(both, "/", curl, true, true)
	tells(both, "/", "Accept: application/json", true, true)
	tells(both, "/x", browser, false, false)
	tells(alone, "/", curl, true, false)
	mail := at(api.Mail)
	tells(mail, "/", browser, false, false)
	for _, loading := range []bool{false, true} {
		h.server.SetLoading(loading)
		for _, on := range []*house{both, alone} {
			for _, path := range []string{"/", "/?x=//evil.example"} {
				c := on.dial()
				c.send("GET " + path + " HTTP/1.1\r\nHost: evil.example\r\n" + browser + "\r\nConnection: close\r\n\r\n")
				a, err := c.read("GET")
				if err != nil {
					t.Fatal(err)
				}
				if a.StatusCode != http.StatusFound || a.Header.Get("Location") != "/console/" || a.Header.Get("Vary") != "Accept" {
					t.Errorf("loading %v: %d %v", loading, a.StatusCode, a.Header)
				}
			}
		}
	}
}
