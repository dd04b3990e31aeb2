package catalog

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// A Locale is the content of a template in one language. It stands for itself: nothing of the template's own texts fills
// it in.
type Locale struct {
	_               struct{} `cbor:",toarray"`
	Tag             string   // canonical BCP 47, such as "de" or "pt-BR"; the block's label
	SubjectTemplate string
	BodyHTML        string
	BodyText        string
}

// Locales are the languages of a template, sorted by tag; nil for none. In JSON they are an object by tag.
type Locales []Locale

// Limits on the languages of one template.
const (
	MaxLocales     = 50
	MaxLocaleBytes = 4 << 20 // of all texts of all languages
)

// Fields lists the attributes of the block.
func (l *Locale) Fields() []Field {
	return []Field{
		{Name: "subjectTemplate", Value: &l.SubjectTemplate, Label: "Subject", Required: true},
		{Name: "bodyHtml", Value: &l.BodyHTML, Label: "HTML", Lines: true, Verbatim: true},
		{Name: "bodyText", Value: &l.BodyText, Label: "Text", Lines: true, Verbatim: true},
	}
}

// Find returns the locale with a tag, nil if there is none.
func (ls Locales) Find(tag string) *Locale {
	i := slices.IndexFunc(ls, func(l Locale) bool { return l.Tag == tag })
	if i < 0 {
		return nil
	}
	return &ls[i]
}

// Tags lists the tags.
func (ls Locales) Tags() []string {
	tags := make([]string, len(ls))
	for i := range ls {
		tags[i] = ls[i].Tag
	}
	return tags
}

// Sort sorts by tag, which is the order everywhere.
func (ls Locales) Sort() {
	slices.SortFunc(ls, func(a, b Locale) int { return strings.Compare(a.Tag, b.Tag) })
}

// localeText is a Locale in JSON. Like a template, it has all its texts, those that are empty too.
type localeText struct {
	SubjectTemplate string `json:"subjectTemplate"`
	BodyHTML        string `json:"bodyHtml"`
	BodyText        string `json:"bodyText"`
}

// MarshalJSON writes an object by tag.
func (ls Locales) MarshalJSON() ([]byte, error) {
	texts := make(map[string]localeText, len(ls))
	for _, l := range ls {
		texts[l.Tag] = localeText{l.SubjectTemplate, l.BodyHTML, l.BodyText}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // the texts are HTML
	err := e.Encode(texts)
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), err
}

// UnmarshalJSON reads what MarshalJSON writes.
func (ls *Locales) UnmarshalJSON(data []byte) error {
	var texts map[string]localeText
	if err := json.Unmarshal(data, &texts); err != nil {
		return err
	}
	*ls = nil
	for _, tag := range slices.Sorted(maps.Keys(texts)) {
		t := texts[tag]
		*ls = append(*ls, Locale{Tag: tag, SubjectTemplate: t.SubjectTemplate, BodyHTML: t.BodyHTML, BodyText: t.BodyText})
	}
	return nil
}

// localesField is the name of the field of a template that has its locales.
const localesField = "locales"

// flat returns fields with each text of the locales as a field of its own, such as locales.de.subjectTemplate: a change
// says which text of which language differs.
func flat(fields []Field) []Field {
	at := slices.IndexFunc(fields, func(f Field) bool { _, is := f.Value.(*Locales); return is })
	if at < 0 {
		return fields
	}
	all := slices.Clone(fields[:at])
	locales := *fields[at].Value.(*Locales)
	for i := range locales {
		all = append(all, flatLocale(&locales[i])...)
	}
	return append(all, fields[at+1:]...)
}

func flatLocale(l *Locale) []Field {
	fields := l.Fields()
	for i := range fields {
		fields[i].File = "locale." + l.Tag + "." + Snake(fields[i].Name)
		fields[i].Name = localesField + "." + l.Tag + "." + fields[i].Name
		fields[i].Label += " (" + l.Tag + ")"
	}
	return fields
}

// flatField returns the field of flat with a name, nil if it is none.
func flatField(name string) *Field {
	rest, is := strings.CutPrefix(name, localesField+".")
	tag, _, found := strings.Cut(rest, ".")
	if !is || !found {
		return nil
	}
	return fieldNamed(flatLocale(&Locale{Tag: tag}), name)
}
