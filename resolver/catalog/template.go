package catalog

import (
	"cmp"
	"math"
	"regexp"
	"strconv"
	"time"
)

// A Template is a mail template. ProjectID is 0 for a default template, which every project can send.
type Template struct {
	_               struct{} `cbor:",toarray"`
	ID              int64
	UUID            UUID `cbor:"-"`
	ProjectID       int64
	Code            string // the block's label
	Name            string
	SubjectTemplate string
	BodyHTML        string
	BodyText        string
	Active          bool
	MaxAge          string    // how long a send may be retried, such as "10m"; "" means 24h
	Category        string    // what recipients may unsubscribe from, such as "newsletter"; "": nothing
	Locales         Locales   // other languages
	CreatedAt       time.Time `cbor:"-"`
	UpdatedAt       time.Time `cbor:"-"`
}

// Fields lists the attributes of the block.
func (t *Template) Fields() []Field {
	return []Field{
		{Name: "name", Value: &t.Name, Label: "Name", Required: true},
		{Name: "subjectTemplate", Value: &t.SubjectTemplate, Label: "Subject", Required: true,
			Help: "Placeholders are {{name}}."},
		{Name: "bodyHtml", Value: &t.BodyHTML, Label: "HTML", Lines: true, Verbatim: true},
		{Name: "bodyText", Value: &t.BodyText, Label: "Text", Lines: true, Verbatim: true},
		{Name: "active", Value: &t.Active, Label: "Active"},
		{Name: "maxAge", Value: &t.MaxAge, Label: "Kept trying for", Help: "Such as 10m or 24h."},
		{Name: "category", Value: &t.Category, Label: "Category",
			Help: "What recipients subscribe to and can leave with one click, such as newsletter. Empty for mail that they " +
				"need."},
		{Name: localesField, Value: &t.Locales, Label: "Languages", Block: "locale",
			Help: "A send with one of these languages takes its texts."},
	}
}

// DefaultMaxAge is the default of MaxAge.
const DefaultMaxAge = "24h"

// EffectiveMaxAge returns MaxAge, or its default.
func (t *Template) EffectiveMaxAge() string { return cmp.Or(t.MaxAge, DefaultMaxAge) }

var lifetimeUnits = map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour,
	'w': 7 * 24 * time.Hour}

// Lifetime returns EffectiveMaxAge as a duration, capped at the longest duration. For an invalid MaxAge it is 0.
func (t *Template) Lifetime() time.Duration {
	d, _ := ParseLifetime(t.EffectiveMaxAge())
	return d
}

// ParseLifetime reads a number from 1 with a unit of s, m, h, d or w. The result is capped at the longest duration.
func ParseLifetime(text string) (d time.Duration, ok bool) {
	if !lifetime.MatchString(text) {
		return 0, false
	}
	n, _ := strconv.Atoi(text[:len(text)-1])
	unit := lifetimeUnits[text[len(text)-1]]
	if time.Duration(n) > math.MaxInt64/unit {
		return math.MaxInt64, true
	}
	return time.Duration(n) * unit, true
}

// Limits on templates (mailer/README.md).
const (
	MaxBodyBytes    = 512 << 10
	MaxSubjectBytes = 998 // also for the subject with its values
	MaxVariables    = 100 // that one template can use, and one send can give, without ProjectNameVariable
)

// UnsubscribeVariable is set by the service for templates with a category: the link with which the recipient leaves it.
const UnsubscribeVariable = "unsubscribeUrl"

// The variables that the service gives: the project's name, if a send does not set it, and the project's labels, whose
// names begin with LabelVariable.
const (
	ProjectNameVariable = "projectName"
	LabelVariable       = "label."
)

var templateCode = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// Validate checks the values. texts are the problems of the subject and the bodies, which package mailer/template finds.
func (t *Template) Validate(texts Problems) Problems {
	var ps Problems
	if !templateCode.MatchString(t.Code) {
		ps.Addf("code", "must be 1 to 64 of letters, digits, underscores, dots and hyphens, beginning with a letter or digit")
	}
	validateName(&ps, t.Name)
	ps = append(ps, texts...)
	if t.MaxAge != "" && !lifetime.MatchString(t.MaxAge) {
		ps.Addf("maxAge", `must be a number with a unit of s, m, h, d or w, such as "10m"`)
	}
	if t.Category != "" {
		if msg := CheckCategory(t.Category); msg != "" {
			ps.Addf("category", "%s", msg)
		}
	}
	return ps
}

// UnfitForBody reports the characters of a body that no mail reader shows, and that are never sent: control characters
// except tabs and line breaks. Those from U+0080 on are allowed, because they come from wrongly declared Windows text.
func UnfitForBody(r rune) bool {
	return r < ' ' && r != '\n' && r != '\r' && r != '\t' || r == 0x7f
}
