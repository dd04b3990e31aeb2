package template

import (
	"html"
	"regexp"
	"strings"
)

// Editors spoil placeholders: they encode the braces, put tags, blanks or invisible characters between them, or lose one
// of four. Mailed as it is, {{link}} in such a form is a dead link, so each form is refused when the template is saved.
const (
	openBrace  = `(\{|%7b|&#0*123;?|&#x0*7b;?|&lbrace;|&lcub;|｛)`
	closeBrace = `(\}|%7d|&#0*125;?|&#x0*7d;?|&rbrace;|&rcub;|｝)`
	// between is what editors leave within a placeholder and readers hardly see. No brace is in it, so that texts are
	// walked over in linear time.
	between = `((?:\s|%20|&nbsp;|&#160;|&zwnj;|&zwj;|&shy;|[\x{A0}\x{AD}\x{200B}-\x{200D}\x{2060}\x{FEFF}]|<[^<>{}]*>)*)`
)

var (
	spoiltForm = regexp.MustCompile(`(?i)^` + openBrace + between + openBrace + `?` + between + `([a-z_][a-z0-9_.]*)` +
		between + closeBrace + `?` + between + closeBrace)
	codeElement = regexp.MustCompile(`(?is)<(?:style|script)\b.*?(?:</(?:style|script)|$)`)
	anyTag      = regexp.MustCompile(`<[^<>]*>`)
	invisible   = regexp.MustCompile(`[\x{A0}\x{AD}\x{200B}-\x{200D}\x{2060}\x{FEFF}]`)
)

// A spoiltPlaceholder is text[start:end], which was meant as {{name}}.
type spoiltPlaceholder struct {
	start, end int
	name       string
}

// spoilt finds the spoilt placeholders of a text, in their order. In HTML, style sheets and scripts have braces of their
// own, and no placeholder may be there.
func spoilt(text string, isHTML bool) (all []spoiltPlaceholder) {
	for at := 0; at < len(text); {
		i := strings.IndexAny(text[at:], "{%&｛")
		if i < 0 {
			break
		}
		at += i
		m := spoiltForm.FindStringSubmatchIndex(text[at:])
		if m == nil {
			at++
			continue
		}
		part := func(n int) string {
			if m[2*n] < 0 {
				return ""
			}
			return text[at+m[2*n] : at+m[2*n+1]]
		}
		name, end := part(5), at+m[1]
		whole := part(3) != "" && part(7) != ""
		switch {
		case whole && placeholderName(strings.TrimSuffix(strings.TrimPrefix(text[at:end], "{{"), "}}")) == name:
		case !whole && (part(3) == "") == (part(7) == ""): // {name}, which is no placeholder
			end = at + 1
		case part(3) == "" && part(8) != "", part(7) == "" && part(2) != "": // { {name} in a text about something else
			end = at + 1
		default:
			all = append(all, spoiltPlaceholder{at, end, name})
		}
		at = end
	}
	if len(all) > 0 && isHTML {
		all = outside(all, codeElement.FindAllStringIndex(text, -1))
	}
	return all
}

// outside returns those that do not begin in one of the ranges.
func outside(all []spoiltPlaceholder, ranges [][]int) (kept []spoiltPlaceholder) {
	for _, s := range all {
		for len(ranges) > 0 && ranges[0][1] <= s.start {
			ranges = ranges[1:]
		}
		if len(ranges) == 0 || s.start < ranges[0][0] {
			kept = append(kept, s)
		}
	}
	return kept
}

// meant returns the name that was meant by what stands in double braces, or "": without tags, references and invisible
// characters.
func meant(s string) string {
	return placeholderName(invisible.ReplaceAllString(html.UnescapeString(anyTag.ReplaceAllString(s, "")), ""))
}
