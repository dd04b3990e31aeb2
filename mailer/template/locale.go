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
