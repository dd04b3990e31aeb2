package catalog

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The values of Project.Status. Draft and active projects resolve; a suspended one answers 403.
const (
	StatusDraft     = "DRAFT"
	StatusActive    = "ACTIVE"
	StatusSuspended = "SUSPENDED"
)

// Statuses are the allowed values of Project.Status.
var Statuses = []string{StatusDraft, StatusActive, StatusSuspended}

// A Project is the root of a declaration. The store sets CreatedAt and UpdatedAt: when it first saw the project and
// when the project's own fields (not its domains or settings) last changed, UTC, in whole microseconds.
type Project struct {
	_           struct{} `cbor:",toarray"`
	ID          int64
	UUID        UUID `cbor:"-"`
	Name        string
	Slug        string
	Description *string
	Status      string
	Labels      []Label   // sorted by name, nil if there are none
	Owner       *string   // keys with this owner reach the project; nil: none
	CreatedAt   time.Time `cbor:"-"`
	UpdatedAt   time.Time `cbor:"-"`
}

// Fields lists the attributes of the block. The slug is its label.
func (p *Project) Fields() []Field {
	return []Field{
		{Name: "name", Value: &p.Name, Label: "Name", Required: true},
		{Name: "description", Value: &p.Description, Label: "Description", Lines: true},
		{Name: "status", Value: &p.Status, OneOf: Statuses, Label: "Status",
			Help: "The domains of a suspended project are answered with 403."},
		{Name: "labels", Value: &p.Labels, Own: true, Label: "Labels",
			Help: "One name=value a line, for gateways and tools."},
		{Name: "owner", Value: &p.Owner, Own: true, Label: "Owner", Unset: "nobody",
			Help: "Keys with this owner reach the project."},
	}
}

// A ProjectConfig is one project block with its nested blocks. Service and Auth hold the block's own values; see Over
// for the values in force.
type ProjectConfig struct {
	Project   Project
	Domains   []Domain
	Service   ServiceSettings
	Auth      AuthSettings
	SMTP      *SMTPConfig // nil: none
	Templates []Template
}

// Limits on a project's fields, in characters (api/README.md, Projects).
const (
	MaxNameLen        = 120
	MaxSlugLen        = 63
	MaxDescriptionLen = 2000
)

// Validate checks the project's own fields.
func (p *Project) Validate() Problems {
	var ps Problems
	validateName(&ps, p.Name)
	if msg := CheckSlug(p.Slug); msg != "" {
		ps.Addf("slug", "%s", msg)
	}
	if p.Description != nil && utf8.RuneCountInString(*p.Description) > MaxDescriptionLen {
		ps.Addf("description", "has %d characters, %d are allowed", utf8.RuneCountInString(*p.Description), MaxDescriptionLen)
	}
	if !slices.Contains(Statuses, p.Status) {
		ps.Addf("status", "must be one of %s", strings.Join(Statuses, ", "))
	}
	if p.Owner != nil {
		if msg := CheckOwner(*p.Owner); msg != "" {
			ps.Addf("owner", "%s", msg)
		}
	}
	return append(ps, ValidateLabels(p.Labels)...)
}

// CheckSlug returns what is wrong with a slug, or "".
func CheckSlug(slug string) string {
	switch {
	case slug == "":
		return "must not be empty"
	case slug == "resolve" || slug == "by-slug":
		return `"` + slug + `" is a word of the API and cannot be a slug`
	case len(slug) > MaxSlugLen:
		return "is longer than 63 characters"
	case slug[0] == '-' || slug[len(slug)-1] == '-':
		return "must begin and end with a letter or digit"
	}
	for _, r := range slug {
		if !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-') {
			hint := ""
			if like := SlugOf(slug); like != "" {
				hint = `, as "` + like + `" does`
			}
			return "may hold lower-case letters a-z, digits and hyphens only" + hint
		}
	}
	return ""
}

// BreaksLine reports whether r cannot be in a text of one line, such as a mail header: control characters, and
// Unicode's line and paragraph separators, which some programs treat as line breaks.
func BreaksLine(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }

func validateName(ps *Problems, name string) {
	switch n := utf8.RuneCountInString(name); {
	case strings.TrimSpace(name) == "":
		ps.Addf("name", "is required and must not be blank")
	case n > MaxNameLen:
		ps.Addf("name", "has %d characters, %d are allowed", n, MaxNameLen)
	case strings.ContainsFunc(name, BreaksLine):
		ps.Addf("name", "must not hold control characters or line breaks")
	}
}
