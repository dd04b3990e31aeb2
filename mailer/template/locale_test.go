package template_test

import (
	"slices"
	"strings"
	"testing"

	"fingerpost/mailer/template"
	"fingerpost/resolver/catalog"
)

// localized returns a template with locales, whose texts are their tags.
func localized(tags ...string) *catalog.Template {
	t := welcome()
	for _, tag := range tags {
		t.Locales = append(t.Locales, catalog.Locale{Tag: tag, SubjectTemplate: tag, BodyText: tag})
	}
	return &t
}

// TestValidateLocales: each language is checked as the template is, and named in its problems.
func TestValidateLocales(t *testing.T) {
	t.Parallel()
	f := func(change func(t *catalog.Template), want ...string) {
		t.Helper()
		tmpl := localized("de", "fr")
		change(tmpl)
		if got := paths(template.Validate(tmpl)); !slices.Equal(got, want) {
			t.Errorf("problems on %q, want %q", got, want)
		}
	}
	f(func(t *catalog.Template) {})
	f(func(t *catalog.Template) { t.Locales[0].SubjectTemplate = "" }, "locales.de.subjectTemplate")
	f(func(t *catalog.Template) { t.Locales[0].BodyText = "" }, "locales.de")
	f(func(t *catalog.Template) { t.Locales[1].BodyText, t.Locales[1].BodyHTML = "\x00", "<a {{x}}>" }, "locales.fr.bodyHtml", "locales.fr.bodyText")
	f(func(t *catalog.Template) { t.Locales[0].Tag = "fr" }, "locales")
	for _, tag := range []string{"DE", "de_AT", "iw", "", "xx", "und", "english", "de-u-co-phonebk", "zh-Hans-CN-x-y"} {
		f(func(t *catalog.Template) { t.Locales[0].Tag = tag }, "locales."+tag)
	}
	for _, tag := range []string{"zh-Hant", "sr-Latn", "es-419", "de-1996", "gsw", "pt-BR"} {
		f(func(t *catalog.Template) { t.Locales[0].Tag = tag })
	}
	f(func(t *catalog.Template) {
		for i := range t.Locales {
			t.Locales[i].BodyHTML, t.Locales[i].BodyText = strings.Repeat("a", catalog.MaxBodyBytes), strings.Repeat("b", catalog.MaxBodyBytes)
		}
		for _, tag := range []string{"it", "nl"} {
			t.Locales = append(t.Locales, t.Locales[0])
			t.Locales[len(t.Locales)-1].Tag = tag
		}
	}, "locales")
	many := localized()
	for a := 'a'; len(many.Locales) <= catalog.MaxLocales; a++ {
		for b := 'a'; b <= 'z' && len(many.Locales) <= catalog.MaxLocales; b++ {
			l := catalog.Locale{Tag: string(a) + string(b), SubjectTemplate: "s", BodyText: "t"}
			if len(template.ValidateLocale(&l)) == 0 {
				many.Locales = append(many.Locales, l)
			}
		}
	}
	if got := paths(template.Validate(many)); !slices.Equal(got, []string{"locales"}) {
		t.Error(got)
	}
}
