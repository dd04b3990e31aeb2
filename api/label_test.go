package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fingerpost/resolver/rowjson"
)

const labelled = `project "acme" {
  name   = "Acme"
  labels = { plan = "gold" }
  domain "shop.acme.example" {}
  domain "*.acme.example" { certificates = true }
}
`

// TestLabelProblems: every label that breaks a rule is named, in one answer.
func TestLabelProblems(t *testing.T) {
	t.Parallel()
	d := newDesk(t, map[string]string{"acme.hcl": labelled})
	f := func(labels string, fields ...string) {
		t.Helper()
		for _, call := range [][2]string{{"POST", "/api/platform/projects"}, {"PUT", d.path(t, "/api/platform/projects/@acme")}} {
			a := d.askBody(call[0], call[1], d.key, `{"name": "N", "labels": `+labels+`}`)
			if got := a.fields(); a.StatusCode != 400 || !slices.Equal(got, fields) {
				t.Errorf("%s %s: %d %v, want %v: %s", call[0], labels, a.StatusCode, got, fields, a.body)
			}
		}
	}
	f(`"plan"`, "labels")
	f(`{"Plan": "a", "b": 7, "ok": "x", "z": "a\nb"}`, "labels.b", "labels.Plan", "labels.z")
	f(`{"plan": null}`, "labels.plan")
	f(`{"plan": "`+strings.Repeat("ü", 257)+`"}`, "labels.plan")
	many := make([]string, 33)
	for i := range many {
		many[i] = fmt.Sprintf(`"l%d": ""`, i)
	}
	f(`{`+strings.Join(many, ",")+`}`, "labels")
}

// TestLabelsAndIfMatch: a change of the labels alone is a change of the project, so a write that builds on older labels
// is refused. A project without labels has the ETag of its row.
func TestLabelsAndIfMatch(t *testing.T) {
	t.Parallel()
	d := newDesk(t, map[string]string{"acme.hcl": labelled})
	url := d.path(t, "/api/platform/projects/@acme")
	get := func() (tag, body string) {
		a := d.ask("GET", url, d.key)
		a.check(t, 200, "")
		if strings.Contains(string(a.body), "labels") {
			t.Errorf("%s", a.body)
		}
		body, _, _ = strings.Cut(string(a.body), `,"timestamp":`)
		return a.Header.Get("ETag"), times.ReplaceAllString(body, "")
	}
	before, row := get()
	a := d.askBody("PUT", url, d.key, `{"labels": {"plan": "free"}}`, "If-Match: "+before)
	a.check(t, 200, "")
	after, same := get()
	if after == before || after != a.Header.Get("ETag") || same != row {
		t.Errorf("%s, then %s and %s;\n%s, then\n%s", before, after, a.Header.Get("ETag"), row, same)
	}
	d.askBody("PUT", url, d.key, `{"labels": {"plan": "gold"}}`, "If-Match: "+before).check(t, 412, "PRECONDITION_FAILED")
	weak := d.askBody("PUT", url, d.key, `{"labels": {"plan": "gold"}}`, "If-Match: W/"+after)
	weak.check(t, 412, "PRECONDITION_FAILED")
	if !strings.Contains(string(weak.body), "a proxy in between has weakened") {
		t.Errorf("%s", weak.body)
	}
	d.askBody("PUT", url, d.key, `{"labels": {"plan": "gold"}}`, "If-Match: "+after).check(t, 200, "")
	if tag, _ := get(); tag != before {
		t.Errorf("equal labels, tags %s and %s", tag, before)
	}
	p, err := d.resolver.ProjectBySlug("acme")
	if err != nil {
		t.Fatal(err)
	}
	a = d.askBody("PUT", url, d.key, `{"labels": null}`)
	p.Labels = nil
	if a.Header.Get("ETag") != rowjson.ProjectETag(p) {
		t.Errorf("%s", a.Header.Get("ETag"))
	}
}

// TestCertificates: the answers about one domain have it, lists and resolve have not.
func TestCertificates(t *testing.T) {
	t.Parallel()
	d := newDesk(t, map[string]string{"acme.hcl": labelled})
	f := func(method, path, body string, status int, want string) (tag string) {
		t.Helper()
		a := d.askBody(method, d.path(t, "/api/platform/projects/"+path), d.key, body)
		a.check(t, status, "")
		if got := string(a.body); strings.Contains(got, "certificates") != (want != "") || !strings.Contains(got, want) {
			t.Errorf("%s %s: %s, want %s", method, path, got, want)
		}
		return a.Header.Get("ETag")
	}
	const shop, rest = "@acme/domains/@shop.acme.example", "@acme/domains/@*.acme.example"
	f("GET", rest, "", 200, `"certificates":true,`)
	tag := f("GET", shop, "", 200, `"certificates":null,`)
	if f("PUT", shop, `{"certificates": false}`, 200, `"certificates":false,`) == tag || f("PUT", shop, `{"certificates": null}`, 200, `"certificates":null,`) != tag {
		t.Error("the ETag does not follow certificates")
	}
	f("POST", "@acme/domains", `{"domain": "new.example", "certificates": false}`, 201, `"certificates":false,`)
	f("GET", "@acme/domains", "", 200, "")
	f("GET", "resolve?domain=new.example", "", 200, "")
	f("GET", "resolve?form=flat&domain=new.example", "", 200, "")
}

// TestResolveLabels: both forms have labels where they are asked for, and only there; a change shows at once.
func TestResolveLabels(t *testing.T) {
	t.Parallel()
	d := newDesk(t, map[string]string{"acme.hcl": labelled, "plain.hcl": "project \"plain\" {\n  name = \"P\"\n  domain \"plain.example\" {}\n}\n"})
	const resolve = "/api/platform/projects/resolve"
	f := func(query, want string) (tag string) {
		t.Helper()
		var a *answer
		for range 2 { // from the store, then from the cache
			a = d.ask("GET", resolve+"?domain="+query, d.key)
			a.check(t, 200, "")
			if got := string(a.body); strings.Contains(got, "labels") != (want != "") || !strings.Contains(got, want) {
				t.Errorf("%s: %s, want %s", query, got, want)
			}
		}
		return a.Header.Get("ETag")
	}
	plain := f("shop.acme.example", "")
	nested, flat := f("shop.acme.example&labels=1", `","labels":{"plan":"gold"}},"authSettings"`), f("x.acme.example&form=flat&labels=1", `Z","labels":{"plan":"gold"}},"authSettings"`)
	f("shop.acme.example&form=flat", "")
	f("plain.example&labels=1", `","labels":{}},"authSettings"`)
	a := d.askBody("POST", resolve+"?labels=1", d.key, `{"domains": ["shop.acme.example", "plain.example"]}`)
	if a.check(t, 200, ""); !strings.Contains(string(a.body), `"labels":{"plan":"gold"}`) || !strings.Contains(string(a.body), `"labels":{}`) {
		t.Errorf("%s", a.body)
	}
	d.askBody("PUT", d.path(t, "/api/platform/projects/@acme"), d.key, `{"labels": {"tier": "a", "plan": "free \"x\""}}`).check(t, 200, "")
	const now = `"labels":{"plan":"free \"x\"","tier":"a"}}`
	if f("shop.acme.example&labels=1", now) == nested || f("x.acme.example&form=flat&labels=1", now) == flat || f("shop.acme.example", "") != plain {
		t.Error("the ETags are not those of the answers")
	}
	for _, bad := range []string{"labels=0", "labels=", "labels=true", "labels=1&labels=1", "labels=%zz"} {
		for _, a := range []*answer{d.ask("GET", resolve+"?domain=shop.acme.example&"+bad, d.key), d.askBody("POST", resolve+"?"+bad, d.key, `{"domains": ["a.example"]}`)} {
			if a.check(t, 400, "VALIDATION_ERROR"); !slices.Equal(a.fields(), []string{"labels"}) {
				t.Errorf("%s: %s", bad, a.body)
			}
		}
	}
}
