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

// TestLocalize: which language is taken for which.
func TestLocalize(t *testing.T) {
	t.Parallel()
	f := func(wanted, want string, tags ...string) {
		t.Helper()
		tmpl := localized(tags...)
		got, tag := template.Localize(tmpl, wanted)
		if tag != want {
			t.Errorf("%s of %q is %q, want %q", wanted, tags, tag, want)
		}
		if want == "" && got != tmpl || want != "" && (got.SubjectTemplate != want || got.BodyText != want || got.Code != tmpl.Code) {
			t.Errorf("%s of %q: %+v", wanted, tags, got)
		}
	}
	f("de-AT", "de-AT", "de", "de-AT")
	f("de-AT", "de", "de", "fr")
	f("de-AT", "", "fr", "en")
	f("de", "de", "de", "de-AT")
	f("DE-at", "de-AT", "de", "de-AT")
	f("de_AT", "de", "de")
	f("", "", "de")
	f("und", "", "de", "en")
	f("en", "", "de")
	f("en-US", "en-GB", "de", "en-GB")
	f("ca", "", "es", "fr")
	f("gsw", "", "fr", "es")
	f("no", "nb", "da", "nb")
	f("pt-PT", "pt-BR", "pt-BR")
	f("pt-PT", "pt-PT", "pt-BR", "pt-PT")
	f("zh-TW", "", "zh-Hans")
	f("zh-TW", "zh-Hant", "zh-Hans", "zh-Hant")
	f("iw", "he", "he")
	f("tlh", "", "de")
	f("xx", "", "de") // there is no such language
	f("xx-DE", "", "de")
	f("x-private", "", "de")
	f("de-u-co-phonebk", "de", "de")
	f("de-1996", "de", "de")
	f("not a language", "", "de")
}

func TestCheckLocale(t *testing.T) {
	t.Parallel()
	for _, fine := range []string{"de", "de-AT", "DE", "zh-Hant-TW", "xx", "und", "de-u-co-phonebk", "x-private", "i-klingon", "en-GB-oed"} {
		if msg := template.CheckLocale(fine); msg != "" {
			t.Errorf("%s: %s", fine, msg)
		}
	}
	for _, bad := range []string{"", "d", "german!", "de--AT", "de-", "-de", "de AT", "verylonglanguage", "de\n", strings.Repeat("de-", 30) + "AT", "1", "дe"} {
		if msg := template.CheckLocale(bad); msg == "" {
			t.Errorf("%q is fine", bad)
		}
	}
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

// FuzzLocale: no text breaks the choice of a language, and a tag that is accepted is chosen by itself.
func FuzzLocale(f *testing.F) {
	for _, s := range []string{"de", "de-AT", "zh-Hant-TW", "x-a", "de-u-co-phonebk-t-en", "i-klingon", "a-b", "en-GB-oed", "de_AT"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, tag string) {
		fine := template.CheckLocale(tag) == ""
		if _, got := template.Localize(localized("de", "en-GB", "zh-Hant"), tag); got != "" && !fine {
			t.Errorf("%q is malformed, and gets %q", tag, got)
		}
		l := localized(tag)
		if len(template.ValidateLocale(&l.Locales[0])) == 0 {
			if _, got := template.Localize(l, tag); got != tag || !fine {
				t.Errorf("%q gets %q", tag, got)
			}
		}
	})
}
