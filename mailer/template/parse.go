package template

import (
	"strings"

	"fingerpost/resolver/catalog"
)

// Validate checks a template: its values, its placeholders, and where they stand in its HTML. The problems of its
// locales are on locales, on locales.TAG, or on a text such as locales.TAG.bodyHtml.
func Validate(t *catalog.Template) catalog.Problems {
	_, texts := split(t)
	ps := append(t.Validate(texts), ValidateLocales(t.Locales)...)
	for i := range t.Locales {
		l := &t.Locales[i]
		for _, p := range ValidateLocale(l) {
			switch p.Path {
			case "", "tag":
				p.Path = "locales." + l.Tag
			default:
				p.Path = "locales." + l.Tag + "." + p.Path
			}
			ps = append(ps, p)
		}
	}
	return ps
}

// parts are a template's texts in segments. A missing text is nil.
type parts struct {
	subject, html, text []Segment
}

// split checks the subject and the bodies, and splits them into segments. The parts are valid only if there are no
// problems.
func split(t *catalog.Template) (parts, catalog.Problems) {
	var (
		all parts
		ps  catalog.Problems
	)
	switch {
	case strings.TrimSpace(t.SubjectTemplate) == "":
		ps.Addf("subjectTemplate", "is required and must not be blank")
	case len(t.SubjectTemplate) > catalog.MaxSubjectBytes:
		ps.Addf("subjectTemplate", "has %d bytes, %d are allowed", len(t.SubjectTemplate), catalog.MaxSubjectBytes)
	case strings.ContainsFunc(t.SubjectTemplate, catalog.BreaksLine):
		ps.Addf("subjectTemplate", "must not hold control characters or line breaks")
	}
	if t.BodyHTML == "" && t.BodyText == "" {
		ps.Addf("", "needs a bodyHtml, a bodyText or both")
	}
	// Few templates have so many tags, so the text part is not made at each check.
	if t.BodyText == "" && strings.Count(t.BodyHTML, "<") > 500 && len(t.BodyHTML) <= catalog.MaxBodyBytes {
		if _, err := PlainText(t.BodyHTML); err != nil {
			ps.Addf("bodyHtml", "%v", err)
		}
	}
	names := map[string]bool{catalog.ProjectNameVariable: true}
	for _, part := range []struct {
		path, text string
		parse      func(path, text string) ([]Segment, catalog.Problems)
		into       *[]Segment
	}{
		{"subjectTemplate", t.SubjectTemplate, ParsePlain, &all.subject},
		{"bodyHtml", t.BodyHTML, ParseHTML, &all.html},
		{"bodyText", t.BodyText, ParsePlain, &all.text},
	} {
		if len(part.text) > catalog.MaxBodyBytes {
			if part.path != "subjectTemplate" { // which was reported already
				ps.Addf(part.path, "has %d bytes, %d are allowed", len(part.text), catalog.MaxBodyBytes)
			}
			continue
		}
		if i := strings.IndexFunc(part.text, catalog.UnfitForBody); i >= 0 && part.path != "subjectTemplate" {
			ps.Addf(part.path, "line %d: must not hold control characters other than tabs and line breaks: this is %U",
				1+strings.Count(part.text[:i], "\n"), rune(part.text[i]))
			continue
		}
		segments, found := part.parse(part.path, part.text)
		*part.into = segments
		ps = append(ps, found...)
		before := len(names)
		for _, s := range segments {
			if s.Name != "" {
				names[s.Name] = true
			}
		}
		if most := catalog.MaxVariables + 1; before <= most && len(names) > most {
			ps.Addf(part.path, "there are %d variables with those of this part, %d are allowed", len(names)-1,
				catalog.MaxVariables)
		}
	}
	return all, ps
}
