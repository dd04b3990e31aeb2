package catalog

import (
	"fmt"
	"slices"
	"strings"
)

// An Inbound is a declared source of outcomes that only a provider of mail knows, such as complaints (mailer/inbound.md).
type Inbound struct {
	_        struct{} `cbor:",toarray"`
	Name     string   // the block's label, a slug, and the end of the address
	UUID     UUID     // see DeriveInboundUUID
	Format   string   // one of InboundFormats
	Secrets  []Secret // each lets the provider in
	Projects []string // slugs; nil: every project
}

// The formats of outcomes.
const (
	InboundSES      = "ses"
	InboundPostmark = "postmark"
	InboundJSON     = "json"
)

// InboundFormats lists the formats.
var InboundFormats = []string{InboundSES, InboundPostmark, InboundJSON}

// Limits on inbound blocks.
const (
	MaxInbounds       = 20
	MaxInboundSecrets = 3
	minInboundSecret  = 16
	maxInboundSecret  = 200
)

// NewInbound returns an inbound block with the values that hold without a line in it.
func NewInbound(name string) *Inbound { return &Inbound{Name: name, UUID: DeriveInboundUUID(name)} }

// DeriveInboundUUID returns the identity of an inbound block: it follows from the name.
func DeriveInboundUUID(name string) UUID { return deriveUUID(KindInbound, name) }

// SecretContext returns the context for which the secrets are sealed.
func (b *Inbound) SecretContext() string { return b.UUID.String() + "/secret" }

// Clone returns a copy of b that shares no mutable memory with it.
func (b *Inbound) Clone() Inbound {
	c := *b
	c.Secrets, c.Projects = slices.Clone(b.Secrets), slices.Clone(b.Projects)
	return c
}

// AllFields lists the fields of an inbound block.
func (b *Inbound) AllFields() []Field {
	return []Field{
		{Name: "name", Value: &b.Name, Heading: true, Label: "Name", Required: true,
			Help: "Lower-case letters, digits and hyphens."},
		{Name: "format", Value: &b.Format, OneOf: InboundFormats, Label: "Format", Required: true,
			Help: "What the provider sends."},
		{Name: "secret", Value: b.Secrets, Label: "Secret", Help: "Lets the provider in."},
		{Name: "projects", Value: b.Projects, Label: "Projects",
			Help: "One slug a line. Left empty, outcomes may be those of every project."},
	}
}

// Object returns the inbound block.
func (b *Inbound) Object() Object {
	return Object{Kind: KindInbound, Name: b.Name, UUID: b.UUID, Fields: b.AllFields}
}

// Validate checks the values.
func (b *Inbound) Validate() Problems {
	var ps Problems
	if msg := CheckSlug(b.Name); msg != "" {
		ps.Addf("name", "%s", msg)
	}
	switch choices := strings.Join(InboundFormats, ", "); {
	case b.Format == "":
		ps.Addf("format", "is required: one of %s", choices)
	case !slices.Contains(InboundFormats, b.Format):
		ps.Addf("format", "must be one of %s", choices)
	}
	ps.checkSecrets(b.Secrets, MaxInboundSecrets, "lets the provider in, and nobody else", CheckInboundSecret)
	ps.checkProjects(b.Projects, "block", "every outcome is dropped")
	return ps
}

// CheckInboundSecret returns what is wrong with a secret that has been opened, "" for nothing. It never quotes it.
func CheckInboundSecret(text string) string {
	unfit := func(r rune) bool { return r <= ' ' || r > '~' }
	if len(text) < minInboundSecret || len(text) > maxInboundSecret || strings.ContainsFunc(text, unfit) {
		return fmt.Sprintf("must have %d to %d characters of ASCII without blanks, such as the output of "+
			`"openssl rand -hex 24"`, minInboundSecret, maxInboundSecret)
	}
	return ""
}
