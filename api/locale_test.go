package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fingerpost/resolver/catalog"
)

// TestLocale: sends, tests and previews take a language, the log names it, and a malformed tag is 400.
func TestLocale(t *testing.T) {
	p := startPost(t, newSink(t), nil)
	shared := template(0, 6, "LANG", "Hello {{a}}", "Hello", true)
	shared.Locales = catalog.Locales{{Tag: "de", SubjectTemplate: "Hallo {{a}}", BodyText: "Hallo{{#if b}} {{b}}{{/if}}"}}
	p.apply("lang.hcl", &catalog.Declared{Templates: []catalog.Template{shared}})
	body := func(first, locale string) string {
		return fmt.Sprintf(`{%s,"toEmail":"ada@example.com","templateCode":"LANG","variables":{"a":"Ada"}%s}`, first, locale)
	}
	const domain, project = `"domain":"post.example"`, `"projectId":41`
	for _, c := range []struct {
		locale, subject string
		want            any
	}{
		{``, "Hello Ada", nil}, {`,"locale":null`, "Hello Ada", nil}, {`,"locale":"de-AT"`, "Hallo Ada", "de"}, {`,"locale":"en"`, "Hello Ada", nil},
		{`,"locale":"xx"`, "Hello Ada", nil},
	} {
		for path, first := range map[string]string{"/send/template": domain, "/send/test-template": project} {
			a := p.ask("POST", path, p.all, body(first, c.locale))
			a.check(t, 200, "")
			if e := p.entry(a); e["subject"] != c.subject || e["locale"] != c.want {
				t.Errorf("%s %s: %v", path, c.locale, e)
			}
		}
		a := p.ask("POST", "/projects/41/templates/preview", p.reader, `{"templateCode":"LANG","variables":{"a":"Ada"}`+c.locale+`}`)
		a.check(t, 200, "")
		names := "[a]"
		if c.want != nil {
			names = "[a b]"
		}
		if d := a.data(); d["subject"] != c.subject || d["locale"] != c.want || fmt.Sprint(d["variables"]) != names {
			t.Errorf("preview %s: %s", c.locale, a.body)
		}
	}
	for _, bad := range []string{`""`, `"german!"`, `7`, `{}`, `"de--AT"`, `"` + strings.Repeat("a", 70) + `"`} {
		for path, text := range map[string]string{"/send/template": body(domain, `,"locale":`+bad), "/send/test-template": body(project, `,"locale":`+bad),
			"/projects/41/templates/preview": `{"templateCode":"LANG","locale":` + bad + `}`} {
			a := p.ask("POST", path, p.all, text)
			if a.check(t, 400, "VALIDATION_ERROR"); !slices.Equal(a.fields(), []string{"locale"}) {
				t.Errorf("%s %s: %s", path, bad, a.body)
			}
		}
	}
	a := p.ask("POST", "/projects/41/templates/preview", p.reader, `{"subjectTemplate":"s","bodyText":"t","locale":"de"}`)
	if a.check(t, 400, "VALIDATION_ERROR"); !slices.Equal(a.fields(), []string{"locale"}) {
		t.Errorf("%s", a.body)
	}
}
