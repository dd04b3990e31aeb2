package catalog

import (
	"crypto/sha256"
	"fmt"
	"reflect"
	"slices"
	"time"
	"unicode/utf8"
)

// The tables below list all fields of a noun, by their names in the API: what the block's label says, and the
// noun's Fields. The audit trail, requests of the API, the client, the merge, forms and explain take them from here.

// NewFields lists the fields of something new of a kind, with the values that the API sets where a request does not have
// them. nil: the kind has no such table.
func NewFields(k Kind) []Field {
	switch k {
	case KindProject:
		return (&Project{Status: StatusDraft}).AuditFields()
	case KindDomain:
		return (&Domain{Active: true}).AuditFields()
	case KindServiceSettings:
		return new(ServiceSettings).Fields()
	case KindAuthSettings:
		return new(AuthSettings).Fields()
	case KindSMTPConfig:
		return (&SMTPConfig{Active: true}).Fields()
	case KindTemplate:
		return (&Template{Active: true}).AuditFields()
	}
	return nil
}

// AuditFields lists the project's own fields for the audit trail.
func (p *Project) AuditFields() []Field {
	return append([]Field{{Name: "slug", Value: &p.Slug, Label: "Slug",
		Help: "Lower-case letters, digits and hyphens. Left empty, it is made from the name."}}, p.Fields()...)
}

// AuditFields lists the fields of a domain for the audit trail.
func (d *Domain) AuditFields() []Field {
	return append([]Field{{Name: "domain", Value: &d.Name, Label: "Domain", Required: true,
		Help: "A name, or *.name for everything below it."}}, d.Fields()...)
}

// AuditFields lists the fields of a template for the audit trail.
func (t *Template) AuditFields() []Field {
	return append([]Field{{Name: "code", Value: &t.Code, Label: "Code", Required: true,
		Help: "What callers name, such as WELCOME."}}, t.Fields()...)
}

// AuditFields lists the fields of a key for the audit trail. Its hash counts as a secret.
func (k *Key) AuditFields() []Field {
	var owner *string
	if k.Owner != "" {
		owner = &k.Owner
	}
	return []Field{
		{Name: "name", Value: &k.Name, Label: "Name", Required: true},
		{Name: "id", Value: &k.ID},
		{Name: "key", Value: &Secret{Source: SecretSealed, Ref: string(k.Hash[:])}},
		{Name: "allow", Value: k.Allow.Words(), OneOf: Permissions, Label: "May"},
		{Name: "projects", Value: k.Projects, Label: "Projects",
			Help: "One slug a line. Left empty, the key covers every project."},
		{Name: "owner", Value: &owner, Label: "Owner", Unset: "nobody",
			Help: "The key covers the projects with this owner, and those of its list alone."},
		{Name: "expiresAt", Value: k.ExpiresAt},
	}
}

// AuditFields lists the values that the defaults block sets, under the names of their blocks.
func (d *Defaults) AuditFields() (fields []Field) {
	add := func(block string, list []Field, said FieldSet) {
		for i, f := range list {
			if said.Has(i) {
				f.Name = block + "." + f.Name
				fields = append(fields, f)
			}
		}
	}
	if d.Service != nil {
		add("serviceSettings", d.Service.Fields(), d.Service.Said)
	}
	if d.Auth != nil {
		add("authSettings", d.Auth.Fields(), d.Auth.Said)
	}
	if d.SMTP != nil {
		add("smtpConfig", d.SMTP.Fields(), ^FieldSet(0))
	}
	if d.Verification != nil {
		add("verification", d.Verification.AuditFields(), ^FieldSet(0))
	}
	return fields
}

// AuditFields lists the fields of the sealing block.
func (s *Sealing) AuditFields() []Field {
	return []Field{{Name: "recipients", Value: s.Recipients}, {Name: "require", Value: &s.Require}}
}

func fieldNamed(fields []Field, name string) *Field {
	i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return &fields[i]
}

// FieldChanges lists the fields that differ between two states of one noun, in the order of its table. A nil list
// stands for a noun that does not exist: then all fields with a value are listed.
func FieldChanges(before, after []Field) (changes []FieldChange) {
	add := func(was, is *Field) {
		if was != nil && is != nil && sameAudited(was, is) {
			return
		}
		name, c := "", FieldChange{}
		var a, b any
		if was != nil {
			name, a = was.Name, auditValue(was)
		}
		if is != nil {
			name, b = is.Name, auditValue(is)
		}
		if reflect.DeepEqual(a, b) {
			return
		}
		c.Field = name
		if c.Secret = hides(a) || hides(b); !c.Secret {
			c.Before, c.After = shown(a), shown(b)
		}
		changes = append(changes, c)
	}
	for i := range after {
		add(fieldNamed(before, after[i].Name), &after[i])
	}
	for i := range before {
		if fieldNamed(after, before[i].Name) == nil {
			add(&before[i], nil)
		}
	}
	return changes
}

// sameAudited compares the usual kinds of fields without an allocation: most are equal.
func sameAudited(a, b *Field) bool {
	switch a.Value.(type) {
	case *bool, *int, *string, **string, *Secret:
		return a.Same(*b)
	}
	return reflect.DeepEqual(auditValue(a), auditValue(b))
}

// auditValue returns a field's value in the form of FieldChange, but a Secret as it is. What has no value is nil.
func auditValue(f *Field) any {
	switch v := f.Value.(type) {
	case *int:
		return int64(*v)
	case *string:
		if *v != "" {
			return *v
		}
	case *Secret:
		if v.Source != SecretNone {
			return *v
		}
	case *[]Label:
		if len(*v) > 0 {
			labels := make(map[string]string, len(*v))
			for _, l := range *v {
				labels[l.Name] = l.Value
			}
			return labels
		}
	case []string:
		if v != nil {
			return v
		}
	case time.Time:
		if !v.IsZero() {
			return Moment(v)
		}
	default:
		return f.Plain()
	}
	return nil
}

// hides reports whether v is a secret that must not be shown: one in clear text, or sealed. The text of an expression,
// such as env("X"), is no secret.
func hides(v any) bool {
	s, is := v.(Secret)
	return is && s.Source != SecretEnv && s.Source != SecretFile
}

// MaxAuditText is the longest text in a FieldChange, in bytes. Of a longer one it has the beginning, the length and the
// SHA-256.
const MaxAuditText = 1024

func shown(v any) any {
	switch v := v.(type) {
	case Secret:
		if v.Source == SecretEnv {
			return `env("` + v.Ref + `")`
		}
		return `file("` + v.Ref + `")`
	case string:
		if len(v) <= MaxAuditText {
			return v
		}
		end := MaxAuditText
		for !utf8.RuneStart(v[end]) {
			end--
		}
		return fmt.Sprintf("%s… (%d bytes, SHA-256 %x)", v[:end], len(v), sha256.Sum256([]byte(v)))
	}
	return v
}
