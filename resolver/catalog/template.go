package catalog

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// A Template is a mail template. ProjectID is 0 for a default one, which every project can send.
type Template struct {
	ID              int64
	UUID            UUID
	ProjectID       int64
	Code            string // the block's label
	Name            string
	SubjectTemplate string
	BodyHTML        string
	BodyText        string
	Active          bool
	MaxAge          string // how long a send may be retried, such as "10m"; "" means 24h
	CreatedAt       time.Time
	UpdatedAt       time.Time
}

// Fields lists what a file may say.
func (t *Template) Fields() []Field {
	return []Field{
		{Name: "name", Value: &t.Name},
		{Name: "subjectTemplate", Value: &t.SubjectTemplate},
		{Name: "bodyHtml", Value: &t.BodyHTML},
		{Name: "bodyText", Value: &t.BodyText},
		{Name: "active", Value: &t.Active},
		{Name: "maxAge", Value: &t.MaxAge},
	}
}

// Limits on templates, in bytes (contract http.md 4).
const (
	MaxBodyBytes    = 512 << 10
	MaxSubjectBytes = 998
)

var (
	templateCode = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)
	placeholder  = regexp.MustCompile(`^[ \t]*[A-Za-z_][A-Za-z0-9_.]*[ \t]*$`)
)

// Validate checks the values and the placeholders.
func (t *Template) Validate() Problems {
	var ps Problems
	if !templateCode.MatchString(t.Code) {
		ps.Addf("code", "must be 1 to 64 of letters, digits, underscores, dots and hyphens, beginning with a letter or digit")
	}
	validateName(&ps, t.Name)
	switch {
	case strings.TrimSpace(t.SubjectTemplate) == "":
		ps.Addf("subjectTemplate", "is required and must not be blank")
	case len(t.SubjectTemplate) > MaxSubjectBytes:
		ps.Addf("subjectTemplate", "has %d bytes, %d are allowed", len(t.SubjectTemplate), MaxSubjectBytes)
	case strings.ContainsFunc(t.SubjectTemplate, unicode.IsControl):
		ps.Addf("subjectTemplate", "must not hold control characters")
	}
	if t.BodyHTML == "" && t.BodyText == "" {
		ps.Addf("", "needs a bodyHtml, a bodyText or both")
	}
	if t.MaxAge != "" && !lifetime.MatchString(t.MaxAge) {
		ps.Addf("maxAge", `must be a number with a unit of s, m, h, d or w, such as "10m"`)
	}
	for _, f := range []Field{
		{Name: "subjectTemplate", Value: t.SubjectTemplate}, {Name: "bodyHtml", Value: t.BodyHTML}, {Name: "bodyText", Value: t.BodyText},
	} {
		body := f.Value.(string)
		if len(body) > MaxBodyBytes {
			ps.Addf(f.Name, "has %d bytes, %d are allowed", len(body), MaxBodyBytes)
			continue
		}
		if msg := checkPlaceholders(body); msg != "" {
			ps.Addf(f.Name, "%s", msg)
		}
	}
	return ps
}

// checkPlaceholders finds the first thing in double braces that is no {{name}}.
func checkPlaceholders(body string) string {
	for at := 0; ; {
		open := strings.Index(body[at:], "{{")
		if open < 0 {
			return ""
		}
		open += at
		line := 1 + strings.Count(body[:open], "\n")
		column := 1 + utf8.RuneCountInString(body[strings.LastIndexByte(body[:open], '\n')+1:open])
		length := strings.Index(body[open:], "}}")
		if length < 0 {
			return fmt.Sprintf("line %d, column %d: {{ is never closed; a placeholder is {{name}}", line, column)
		}
		if !placeholder.MatchString(body[open+2 : open+length]) {
			return fmt.Sprintf("line %d, column %d: what stands in double braces must be a name of letters, digits, underscores and dots, such as {{userName}}", line, column)
		}
		at = open + length + 2
	}
}
