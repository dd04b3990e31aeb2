package api_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"fingerpost/api"
	"fingerpost/resolver/catalog"
)

const resolveURL = "/api/platform/projects/resolve"

func TestResolve(t *testing.T) {
	h := start(t)
	before := time.Now().UTC().Add(-time.Millisecond)
	a := h.ask("GET", resolveURL+"?domain=Shop.Acme.Example.:8443", h.onlyResolve)
	a.check(t, 200, "")
	data := a.json["data"].(map[string]any)
	if slug := data["project"].(map[string]any)["slug"]; slug != "acme" {
		t.Errorf("project is %v", slug)
	}
	if domain := data["matchedDomain"].(map[string]any)["domain"]; domain != "shop.acme.example" {
		t.Errorf("matched %v", domain)
	}
	if !regexp.MustCompile(`^\{"success":true,"message":"[^"]+","data":\{.*\},"timestamp":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}"\}$`).Match(a.body) {
		t.Errorf("envelope: %s", a.body)
	}
	stamp, err := time.Parse("2006-01-02T15:04:05.000000", a.json["timestamp"].(string))
	if err != nil || stamp.Before(before) || stamp.After(time.Now().UTC()) {
		t.Errorf("timestamp %v, %v", stamp, err)
	}
	want := map[string]string{"Content-Type": "application/json; charset=utf-8", "Cache-Control": "private, max-age=5", "X-Config-Generation": "1"}
	for name, value := range want {
		if got := a.Header.Get(name); got != value {
			t.Errorf("%s: %q, want %q", name, got, value)
		}
	}
	if !strings.HasPrefix(a.Header.Get("ETag"), `"`) || a.Header.Get("Server") != "" {
		t.Errorf("headers: %v", a.Header)
	}
}

func TestResolveErrors(t *testing.T) {
	h := start(t)
	for _, c := range []struct {
		query  string
		status int
		code   string
		field  string
	}{
		{"", 400, "VALIDATION_ERROR", "domain"},
		{"?", 400, "VALIDATION_ERROR", "domain"},
		{"?domain", 400, "VALIDATION_ERROR", "domain"},
		{"?domain=", 400, "VALIDATION_ERROR", "domain"},
		{"?Domain=globex.example", 400, "VALIDATION_ERROR", "domain"},
		{"?domain=globex.example&domain=globex.example", 400, "VALIDATION_ERROR", "domain"},
		{"?domain=globex.example&%64omain=acme.example", 400, "VALIDATION_ERROR", "domain"},
		{"?domain=globex.example&domain", 400, "VALIDATION_ERROR", "domain"},
		{"?domain=globex.example%00", 400, "VALIDATION_ERROR", "domain"},
		{"?domain=globex%zz.example", 400, "VALIDATION_ERROR", "domain"},
		{"?domain=globex.example%", 400, "VALIDATION_ERROR", "domain"},
		{"?domain=globex.example%4", 400, "VALIDATION_ERROR", "domain"},
		{"?domain=globex+.example", 400, "VALIDATION_ERROR", "domain"},
		{"?domain=globex.example;x", 400, "VALIDATION_ERROR", "domain"},
		{"?domain=*.acme.example", 400, "VALIDATION_ERROR", "domain"},
		{"?domain=10.0.0.1", 400, "VALIDATION_ERROR", "domain"},
		{"?domain=[::1]", 400, "VALIDATION_ERROR", "domain"},
		{"?domain=" + strings.Repeat("a", 300), 400, "VALIDATION_ERROR", "domain"},
		{"?domain=a..b", 400, "VALIDATION_ERROR", "domain"},
		{"?domain=%ff.example", 400, "VALIDATION_ERROR", "domain"},
		{"?domain=globex.example&form=flat&form=flat", 400, "VALIDATION_ERROR", "form"},
		{"?domain=globex.example&form=nested", 400, "VALIDATION_ERROR", "form"},
		{"?domain=globex.example&form=", 400, "VALIDATION_ERROR", "form"},
		{"?domain=globex.example&form=fl%zat", 400, "VALIDATION_ERROR", "form"},
		{"?form=x", 400, "VALIDATION_ERROR", "domain form"},
		{"?domain=nobody.example", 404, "NOT_FOUND", ""},
		{"?domain=acme.example", 404, "NOT_FOUND", ""}, // a wildcard does not match its apex
		{"?domain=off.acme.example", 403, "DOMAIN_NOT_VERIFIED", ""},
		{"?domain=initech.example", 403, "PROJECT_SUSPENDED", ""},
		{"?domain=globex.example", 200, "", ""},
		{"?domain=globex.example&unknown=1&unknown=2&%zz=1", 200, "", ""},
		{"?&&domain=globex.example&", 200, "", ""},
		{"?domain=globex%2Eexample", 200, "", ""},
		{"?%64omain=globex.example", 200, "", ""},
		{"?domain=b%C3%BCcher.example", 200, "", ""},
		{"?domain=xn--bcher-kva.example", 200, "", ""},
		{"?domain=a.b.acme.example", 200, "", ""},
		{"?domain=globex.example#domain=x", 200, "", ""},
	} {
		t.Run(c.query, func(t *testing.T) {
			a := h.ask("GET", resolveURL+c.query, h.onlyRead)
			a.check(t, c.status, c.code)
			if got := strings.Join(a.fields(), " "); got != c.field {
				t.Errorf("details on %q, want %q", got, c.field)
			}
			if c.status != 200 && (a.Header.Get("ETag") != "" || a.Header.Get("Cache-Control") != "no-store") {
				t.Errorf("an error must not be cacheable: %v", a.Header)
			}
		})
	}
}

func TestResolveNotModified(t *testing.T) {
	h := start(t)
	url := resolveURL + "?domain=globex.example"
	tag := h.ask("GET", url, h.onlyResolve).Header.Get("ETag")
	for _, list := range []string{tag, "W/" + tag, `"other", ` + tag, `"other",W/"x" , W/` + tag + `, "y"`, "*", "other" + tag + "\r\nIf-None-Match: " + tag} {
		a := h.ask("GET", url, h.onlyResolve, "If-None-Match: "+list)
		a.check(t, 304, "")
		if len(a.body) > 0 || a.Header.Get("Content-Type") != "" {
			t.Errorf("%s: 304 has a body or a type: %q %v", list, a.body, a.Header)
		}
		for _, name := range []string{"ETag", "Cache-Control", "X-Config-Generation", "X-Request-Id"} {
			if a.Header.Get(name) == "" {
				t.Errorf("%s: 304 lacks %s", list, name)
			}
		}
	}
	for _, list := range []string{`"other"`, strings.Trim(tag, `"`), `"`, `W/`, `x` + tag, "", `"a" "b`} {
		h.ask("GET", url, h.onlyResolve, "If-None-Match: "+list).check(t, 200, "")
	}
	// The other form has another tag.
	h.ask("GET", url+"&form=flat", h.onlyResolve, "If-None-Match: "+tag).check(t, 200, "")
}

// A 304 must not disturb what follows on the connection.
func TestNotModifiedThenMore(t *testing.T) {
	h := start(t)
	request := func(more string) string {
		return "GET " + resolveURL + "?domain=globex.example HTTP/1.1\r\nHost: x\r\nX-PLATFORM-KEY: " + h.all + "\r\n" + more + "\r\n"
	}
	w := h.dial()
	defer w.Close()
	w.send(request(""))
	first := w.answer("GET")
	for range 3 {
		w.send(request("If-None-Match: " + first.Header.Get("ETag") + "\r\n"))
		w.answer("GET").check(t, 304, "")
		w.send(request(""))
		w.answer("GET").check(t, 200, "")
	}
}

func TestResolveForms(t *testing.T) {
	h := start(t)
	secret := func(key string) any {
		a := h.ask("GET", resolveURL+"?form=flat&domain=globex.example", key)
		a.check(t, 200, "")
		data := a.json["data"].(map[string]any)
		if data["matchedDomain"] != "globex.example" || data["project"].(map[string]any)["id"] != "2" {
			t.Errorf("not the flat form: %s", a.body)
		}
		return data["authSettings"].(map[string]any)["jwtSecret"]
	}
	if got := secret(h.onlyRead); got != nil {
		t.Errorf("jwtSecret without the permission: %v", got)
	}
	if got := secret(h.all); got != "canary-jwt-secret" {
		t.Errorf("jwtSecret with the permission: %v", got)
	}
	for key, want := range map[string]bool{h.all: true, h.onlyRead: false} {
		a := h.askBody("POST", resolveURL+"?form=flat", key, `{"domains":["globex.example"]}`)
		if strings.Contains(string(a.body), "canary-jwt-secret") != want {
			t.Errorf("batch, secret shown %v: %s", !want, a.body)
		}
	}
}

func TestResolveMaxAge(t *testing.T) {
	for age, want := range map[time.Duration]string{time.Minute: "private, max-age=60", -1: "private, max-age=0"} {
		h := start(t, func(o *api.Options) { o.ResolveMaxAge = age })
		a := h.ask("GET", resolveURL+"?domain=globex.example", h.all)
		if got := a.Header.Get("Cache-Control"); got != want {
			t.Errorf("%v: %q, want %q", age, got, want)
		}
	}
}

func TestResolveFollowsChanges(t *testing.T) {
	h := start(t)
	url := resolveURL + "?domain=new.example"
	h.ask("GET", url, h.all).check(t, 404, "NOT_FOUND")
	d := &catalog.Declared{Projects: []catalog.ProjectConfig{project(9, "new", "New", catalog.StatusActive, "new.example")}}
	h.apply("new.hcl", d)
	a := h.ask("GET", url, h.all)
	a.check(t, 200, "")
	if a.Header.Get("X-Config-Generation") != "2" {
		t.Errorf("generation %q", a.Header.Get("X-Config-Generation"))
	}
}

func TestResolveBatch(t *testing.T) {
	h := start(t)
	domains := []string{"globex.example", "nobody.example", "off.acme.example", "initech.example", "a..b", "GLOBEX.example:80", "bücher.example", "\u0000"}
	body, _ := json.Marshal(map[string]any{"domains": domains})
	a := h.askBody("POST", resolveURL, h.onlyResolve, string(body), "Content-Type: application/json; charset=UTF-8")
	a.check(t, 200, "")
	rows := a.json["data"].([]any)
	want := []struct {
		status float64
		code   any
	}{{200, nil}, {404, "NOT_FOUND"}, {403, "DOMAIN_NOT_VERIFIED"}, {403, "PROJECT_SUSPENDED"}, {400, "VALIDATION_ERROR"}, {200, nil}, {200, nil}, {400, "VALIDATION_ERROR"}}
	if len(rows) != len(want) {
		t.Fatalf("%d rows, want %d", len(rows), len(want))
	}
	for i, w := range want {
		row := rows[i].(map[string]any)
		if row["domain"] != domains[i] || row["status"] != w.status || row["code"] != w.code || (row["result"] != nil) != (w.status == 200) || (row["etag"] != nil) != (w.status == 200) {
			t.Errorf("row %d: %v, want %v", i, row, w)
		}
	}
	// A key of one project learns nothing about the others' domains.
	a = h.askBody("POST", resolveURL, h.acmeResolve, `{"domains":["shop.acme.example","globex.example","off.globex.example","initech.example","nobody.example"]}`)
	var got []string
	for _, row := range a.json["data"].([]any) {
		code, _ := row.(map[string]any)["code"].(string)
		got = append(got, code)
	}
	if !slices.Equal(got, []string{"", "FORBIDDEN", "FORBIDDEN", "FORBIDDEN", "NOT_FOUND"}) {
		t.Errorf("codes %q", got)
	}
}

func TestResolveBatchForms(t *testing.T) {
	h := start(t)
	body := `{"domains":["globex.example"]}`
	a := h.askBody("POST", resolveURL+"?form=flat", h.onlyRead, body)
	a.check(t, 200, "")
	row := a.json["data"].([]any)[0].(map[string]any)
	if row["result"].(map[string]any)["matchedDomain"] != "globex.example" {
		t.Errorf("not flat: %s", a.body)
	}
	// The tag of a row is that of the single answer in the same form, which a client then asks again with.
	tags := map[any]string{}
	for _, form := range []string{"", "form=flat", "labels=1", "form=flat&labels=1"} {
		for who, key := range map[string]string{"read": h.onlyRead, "all": h.all} {
			a := h.askBody("POST", resolveURL+"?"+form, key, body)
			a.check(t, 200, "")
			tag := a.json["data"].([]any)[0].(map[string]any)["etag"]
			single := h.ask("GET", resolveURL+"?domain=globex.example&"+form, key)
			if got := single.Header.Get("ETag"); got != tag || got == "" {
				t.Errorf("%q for %s: the batch has the tag %v, the answer %q", form, who, tag, got)
			}
			h.ask("GET", resolveURL+"?domain=globex.example&"+form, key, "If-None-Match: "+tag.(string)).check(t, 304, "")
			tags[tag] = form
		}
	}
	if len(tags) < 4 {
		t.Errorf("forms share tags: %v", tags)
	}
	h.askBody("POST", resolveURL+"?form=x", h.onlyRead, body).check(t, 400, "VALIDATION_ERROR")
	h.askBody("POST", resolveURL, h.onlyMail, body).check(t, 403, "FORBIDDEN")
	h.askBody("POST", resolveURL, h.onlyWrite, body).check(t, 403, "FORBIDDEN")
}
