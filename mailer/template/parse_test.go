package template_test

import (
	"slices"
	"strings"
	"testing"

	"fingerpost/mailer/template"
	"fingerpost/resolver/catalog"
)

func welcome() catalog.Template {
	return catalog.Template{Code: "WELCOME", Name: "Welcome", SubjectTemplate: "Welcome, {{userName}}", BodyText: "Hello {{ userName }}", Active: true}
}

func TestTemplatePlaceholders(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		tmpl := welcome()
		tmpl.BodyHTML = body
		ps := template.Validate(&tmpl)
		if want == "" {
			if len(ps) > 0 {
				t.Errorf("%q: %v", body, ps)
			}
			return
		}
		if len(ps) != 1 || ps[0].Path != "bodyHtml" || !strings.HasPrefix(ps[0].Message, want) {
			t.Errorf("%q: problems %v, want one on bodyHtml with %q", body, ps, want)
		}
	}
	f("", "")
	f("no placeholder, { braces } and }} apart", "")
	f("{{a}}", "")
	f("{{ userName }}{{_x9.y}}{{A.b_c}}", "")
	f("{{\ta\t}}", "")
	f("<!--[if mso]>{{a}}<![endif]-->", "")
	f("{{a}}}", "")
	f("{{}}", "line 1, column 1")
	f("{{ }}", "line 1, column 1")
	f("x{{9a}}", "line 1, column 2")
	f("{{a b}}", "line 1, column 1")
	f("{{a-b}}", "line 1, column 1")
	f("{{.a}}", "line 1, column 1")
	f("{{#if a}}x", "line 1, column 1")
	f("x{{/if}}", "line 1, column 2")
	f("{{{a}}}", "line 1, column 1")
	f("{{a\n}}", "line 1, column 1")
	f("{{ü}}", "line 1, column 1")
	f("{{a", "line 1, column 1: {{ is never closed")
	f("{{a}}\n\n  {{b", "line 3, column 3: {{ is never closed")
	f("{{a}}\r\n{{b c}}", "line 2, column 1")
	f("{{a}} {{b}} {{c!}}", "line 1, column 13")
	f("{{a {{b}}", "line 1, column 1")
	f("für {{a b}}", "line 1, column 5") // columns count characters, as editors do
}

func TestTemplateValidate(t *testing.T) {
	f := func(change func(t *catalog.Template), want ...string) {
		t.Helper()
		tmpl := welcome()
		change(&tmpl)
		if got := paths(template.Validate(&tmpl)); !slices.Equal(got, want) {
			t.Errorf("code %.80q, subject %.80q: problems on %q, want %q", tmpl.Code, tmpl.SubjectTemplate, got, want)
		}
	}
	f(func(t *catalog.Template) {})
	f(func(t *catalog.Template) { t.Code = "a.b_c-9" })
	f(func(t *catalog.Template) { t.Code = strings.Repeat("C", 64) })
	for _, bad := range []string{"", "_A", ".A", "-A", "A B", "Ä", "A\n", strings.Repeat("C", 65)} {
		f(func(t *catalog.Template) { t.Code = bad }, "code")
	}
	f(func(t *catalog.Template) { t.Name = "" }, "name")
	f(func(t *catalog.Template) { t.Name = strings.Repeat("ü", 120) })
	f(func(t *catalog.Template) { t.Name = strings.Repeat("ü", 121) }, "name")
	f(func(t *catalog.Template) { t.SubjectTemplate = " " }, "subjectTemplate")
	f(func(t *catalog.Template) { t.SubjectTemplate = "Hi\r\nBcc: x@y.example" }, "subjectTemplate")
	f(func(t *catalog.Template) { t.SubjectTemplate = "Hi\u2029you" }, "subjectTemplate")
	f(func(t *catalog.Template) { t.BodyText, t.BodyHTML = "a\tb\r\nc\u0085\u2028", "<p>\tb\r\n" })
	f(func(t *catalog.Template) { t.BodyText, t.BodyHTML = "a\nb\x01", "<p>\f</p>" }, "bodyHtml", "bodyText")
	f(func(t *catalog.Template) { t.BodyText = "a\x7f" }, "bodyText")
	f(func(t *catalog.Template) { t.SubjectTemplate = strings.Repeat("s", catalog.MaxSubjectBytes) })
	f(func(t *catalog.Template) { t.SubjectTemplate = strings.Repeat("s", catalog.MaxSubjectBytes+1) }, "subjectTemplate")
	f(func(t *catalog.Template) { t.SubjectTemplate = "{{a b}}" }, "subjectTemplate")
	f(func(t *catalog.Template) { t.BodyText = "" }, "")
	f(func(t *catalog.Template) { t.BodyText = strings.Repeat("b", catalog.MaxBodyBytes) })
	f(func(t *catalog.Template) { t.BodyText = strings.Repeat("b", catalog.MaxBodyBytes+1) }, "bodyText")
	f(func(t *catalog.Template) { t.MaxAge = "10m" })
	f(func(t *catalog.Template) { t.MaxAge = "10 minutes" }, "maxAge")
	f(func(t *catalog.Template) { *t = catalog.Template{} }, "code", "name", "subjectTemplate", "")
	f(func(t *catalog.Template) { t.SubjectTemplate, t.BodyText = "{{", "{{" }, "subjectTemplate", "bodyText")
}

func paths(ps catalog.Problems) []string {
	var all []string
	for _, p := range ps {
		all = append(all, p.Path)
	}
	return all
}
