package template

import (
	"errors"

	"golang.org/x/text/language"

	"fingerpost/resolver/catalog"
)

// maxTagBytes is more than any tag of a language that people use.
const maxTagBytes = 64

// readTag reads a BCP 47 tag. known is false if its form is right, but there is no such language, script or region.
func readTag(text string) (tag language.Tag, known bool, err error) {
	if len(text) > maxTagBytes {
		return tag, false, errors.New("it is too long")
	}
	tag, err = language.Parse(text)
	var unknown language.ValueError
	if errors.As(err, &unknown) {
		return tag, false, nil
	}
	return tag, err == nil, err
}

// CheckLocale returns what is wrong with the language that a send asks for, or "". One that nothing is written in is
// fine: the mail is in the template's own texts then.
func CheckLocale(text string) string {
	if _, _, err := readTag(text); err != nil {
		return `must be a language as in BCP 47, such as "de" or "pt-BR"`
	}
	return ""
}

// checkTag returns what is wrong with the tag of a locale of a template, or "".
func checkTag(text string) string {
	tag, known, err := readTag(text)
	switch {
	case err != nil || !known || tag == language.Und || len(tag.Extensions()) > 0:
		return `must be a language as in BCP 47, such as "de" or "pt-BR"`
	case tag.String() != text:
		return "must be written " + tag.String()
	}
	return ""
}

// Localize returns the template with the texts of the locale that suits a wanted one best, and that locale's tag. It
// returns t itself and "" if none suits well, or none is wanted: de-AT gets de-AT, else de; es is nothing for ca.
func Localize(t *catalog.Template, wanted string) (*catalog.Template, string) {
	if wanted == "" || len(t.Locales) == 0 {
		return t, ""
	}
	want, _, err := readTag(wanted)
	if base, _, _ := want.Raw(); err != nil || base.String() == "und" { // a region alone is not a language
		return t, ""
	}
	tags := make([]language.Tag, len(t.Locales))
	for i := range t.Locales {
		tags[i], _, _ = readTag(t.Locales[i].Tag)
	}
	_, at, confidence := language.NewMatcher(tags).Match(want)
	if confidence < language.High {
		return t, ""
	}
	l := &t.Locales[at]
	localized := *t
	localized.SubjectTemplate, localized.BodyHTML, localized.BodyText = l.SubjectTemplate, l.BodyHTML, l.BodyText
	localized.Locales = nil
	return &localized, l.Tag
}

// ValidateLocale checks one locale of a template. The problems are on tag, subjectTemplate, bodyHtml, bodyText, or "" if
// there is no body.
func ValidateLocale(l *catalog.Locale) catalog.Problems {
	var ps catalog.Problems
	if msg := checkTag(l.Tag); msg != "" {
		ps.Addf("tag", "%s", msg)
	}
	_, texts := split(&catalog.Template{SubjectTemplate: l.SubjectTemplate, BodyHTML: l.BodyHTML, BodyText: l.BodyText})
	return append(ps, texts...)
}

// ValidateLocales checks the number and the size of a template's locales, and that no two have the same tag. The
// problems are on locales.
func ValidateLocales(locales catalog.Locales) catalog.Problems {
	var ps catalog.Problems
	if len(locales) > catalog.MaxLocales {
		ps.Addf("locales", "there are %d languages, %d are allowed", len(locales), catalog.MaxLocales)
	}
	size := 0
	seen := map[string]bool{}
	for _, l := range locales {
		size += len(l.SubjectTemplate) + len(l.BodyHTML) + len(l.BodyText)
		if seen[l.Tag] {
			ps.Addf("locales", "language %q is there twice", l.Tag)
		}
		seen[l.Tag] = true
	}
	if size > catalog.MaxLocaleBytes {
		ps.Addf("locales", "have %d bytes together, %d are allowed", size, catalog.MaxLocaleBytes)
	}
	return ps
}
