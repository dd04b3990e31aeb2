package api_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
)

// TestConsoleLanguages: the form of a template adds, changes and removes languages, and its page shows a mail in each.
func TestConsoleLanguages(t *testing.T) {
	r := newConsoleRig(t, newDesk(t, map[string]string{"acme.hcl": `project "acme" {
  name = "Acme"
  template "HI" {
    name             = "Hi"
    subject_template = "Hi {{a}}"
    body_text        = "Hi"
    locale "de" {
      subject_template = "Hallo {{b}}"
      body_text        = "Hallo{{#if c}} {{c}}{{/if}}"
    }
  }
}
`}))
	p, err := r.resolver.ProjectBySlug("acme")
	if err != nil {
		t.Fatal(err)
	}
	tmpl, err := r.resolver.OwnTemplate(p.ID, "HI")
	if err != nil {
		t.Fatal(err)
	}
	g := r.signIn(t, r.key)
	form := fmt.Sprintf("/console/edit?kind=template&project=%d&id=%d", p.ID, tmpl.ID)
	g.send(form, nil)
	sent, _ := g.controls("/console/edit")
	german := map[string]any{"subjectTemplate": "Hallo {{b}}", "bodyText": "Hallo{{#if c}} {{c}}{{/if}}"}
	f := func(what string, change url.Values, want map[string]any) {
		t.Helper()
		all := maps.Clone(sent)
		maps.Copy(all, change)
		call := g.changed(what, all, "name", sent.Get("name"))
		if call == nil {
			return
		}
		if body := map[string]any{"code": "HI", "locales": want}; !reflect.DeepEqual(call.body, body) {
			t.Errorf("%s: it sends %v, want %v", what, call.body, body)
		}
		if call.status != http.StatusOK || !strings.Contains(g.page, "what it changes") {
			t.Errorf("%s: %d %v, then %s", what, call.status, call.answer, visibleText(g.page))
		}
	}
	f("add", url.Values{"locales._.tag": {" fr "}, "locales._.subjectTemplate": {"Salut"}, "locales._.bodyHtml": {"<p>Salut</p>"}},
		map[string]any{"de": german, "fr": map[string]any{"subjectTemplate": "Salut", "bodyHtml": "<p>Salut</p>"}})
	f("change", url.Values{"locales.de.bodyText": {"Servus"}}, map[string]any{"de": map[string]any{"subjectTemplate": "Hallo {{b}}", "bodyText": "Servus"}})
	f("remove", url.Values{"locales.de.bodyText": {""}, "locales.de.subjectTemplate": {""}}, map[string]any{})

	before := len(g.calls)
	all := maps.Clone(sent)
	all.Set("locales._.subjectTemplate", "Salut")
	g.send("/console/edit", all)
	if g.status != http.StatusBadRequest || len(g.calls) != before || !strings.Contains(visibleText(g.page), "which language is it?") {
		t.Errorf("without a tag: %d %s", g.status, visibleText(g.page))
	}
	all = maps.Clone(sent)
	all.Set("locales.de.bodyText", "{{a b}}")
	if g.send("/console/edit", all); g.status != http.StatusBadRequest || !strings.Contains(visibleText(g.page), "Text (de): line 1, column 1") {
		t.Errorf("a placeholder that is none: %d %s", g.status, visibleText(g.page))
	}

	for locale, want := range map[string][]string{"": {"Hi ", `name="var.a"`}, "de": {"Hallo ", `name="var.b"`, `name="var.c"`}, "xx": {"Hi "}} {
		g.send(fmt.Sprintf("/console/template?project=%d&id=%d&locale=%s", p.ID, tmpl.ID, locale), nil)
		for _, text := range append(want, `<option value="de"`) {
			if g.status != http.StatusOK || !strings.Contains(g.page, text) {
				t.Errorf("%q lacks %s: %d %s", locale, text, g.status, visibleText(g.page))
			}
		}
	}
}
