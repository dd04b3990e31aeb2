package form

import (
	"strings"

	"fingerpost/resolver/catalog"
)

// localesField is the API's field for the languages of a template. The form has a field for each of their texts, such as
// locales.de.bodyHtml, and those of one more language, which has no tag yet.
const (
	localesField = "locales"
	localePrefix = localesField + "."
	newLocale    = localePrefix + "_."
	newTag       = newLocale + "tag"
)

// languages puts the fields of the texts in place of the one that has them all. shared: of what the API has, nothing is
// kept.
func (f *Form) languages(shared bool) {
	at := len(f.Fields) - 1
	if at < 0 || f.Fields[at].Name != localesField {
		return
	}
	f.Fields = f.Fields[:at]
	var locales catalog.Locales
	if f.now != nil {
		locales = *named(f.now, localesField).Value.(*catalog.Locales)
	}
	for _, l := range locales {
		f.language("Language "+l.Tag, localePrefix+l.Tag+".", l.Tag, l.Fields(), shared)
		f.Fields[len(f.Fields)-1].Help = "Without any text the language is removed."
	}
	tag := ""
	f.language("Another language", newLocale, "new", append([]catalog.Field{{Name: "tag", Value: &tag, Label: "Language",
		Help: "Such as de or pt-BR. Left empty, none is added."}}, new(catalog.Locale).Fields()...), false)
}

// language adds the fields of one language, which people tell apart by what stands behind their labels.
func (f *Form) language(heading, prefix, behind string, fields noun, shared bool) {
	for i, field := range fields {
		field.Name, field.Label, field.Required = prefix+field.Name, field.Label+" ("+behind+")", false
		if i == 0 {
			field.Group = heading
		}
		x := Field{control: control{Field: field}}
		x.choose()
		if x.begin(TextOf(field)); shared {
			x.base = ""
		}
		f.Fields = append(f.Fields, x)
	}
}

// isLocale reports whether a field is a text of a language.
func isLocale(name string) bool { return strings.HasPrefix(name, localePrefix) }

// locales returns the languages that the form has, for the API: those with a text.
func (f *Form) locales() (locales map[string]map[string]string, ok bool) {
	locales = map[string]map[string]string{}
	tag, ok := f.Field(newTag), true
	for i := range f.Fields {
		x := &f.Fields[i]
		if !isLocale(x.Name) || x.Name == newTag || x.Text == "" && !strings.HasPrefix(x.Name, newLocale) {
			continue
		}
		dot := strings.LastIndexByte(x.Name, '.')
		of := x.Name[len(localePrefix):dot]
		if of == "_" {
			if of = tag.Text; of == "" && x.Text != "" {
				tag.Error, ok = "is needed: which language is it?", false
			}
			if of == "" || locales[of] != nil && x.Text == "" {
				continue
			}
		}
		if locales[of] == nil {
			locales[of] = map[string]string{}
		}
		locales[of][x.Name[dot+1:]] = x.Text
	}
	return locales, ok
}
