package catalog

// The tables below list all fields of a noun, by their names in the API: what the block's label says, and the
// noun's Fields. The audit trail, requests of the API, the client, the merge, forms and explain take them from here.

// NewFields lists the fields of something new of a kind, with the values that hold without a line in its block. It
// returns nil for an unknown kind.
func NewFields(k Kind) []Field {
	switch k {
	case KindProject:
		return (&Project{Status: StatusDraft}).AllFields()
	case KindDomain:
		return (&Domain{Active: true}).AllFields()
	case KindServiceSettings:
		s := NewServiceSettings()
		return s.Fields()
	case KindAuthSettings:
		a := NewAuthSettings()
		return a.Fields()
	case KindSMTPConfig:
		return newSMTPConfig().Fields()
	case KindTemplate:
		return (&Template{Active: true}).AllFields()
	case KindKey:
		return new(Key).AllFields()
	case KindEdge:
		return new(Edge).AllFields()
	case KindWebhook:
		return NewWebhook("").AllFields()
	case KindLogin:
		return NewLogin("").AllFields()
	case KindInbound:
		return NewInbound("").AllFields()
	case KindDefaults:
		return newDefaultsFields()
	case KindSealing:
		return new(Sealing).AllFields()
	}
	return nil
}

func newSMTPConfig() *SMTPConfig { return &SMTPConfig{Active: true} }

// FieldOf returns the field of a kind's table with a name of the API, nil if there is none. In a FieldChange the texts
// of a template's locales are fields of their own.
func FieldOf(k Kind, name string) *Field {
	if f := fieldNamed(NewFields(k), name); f != nil || k != KindTemplate {
		return f
	}
	return flatField(name)
}

// AttributeOf returns the name in the files of a field of a FieldChange.
func AttributeOf(k Kind, name string) string {
	if f := FieldOf(k, name); f != nil {
		return f.Attribute()
	}
	return Snake(name)
}

// AllFields lists the project's own fields.
func (p *Project) AllFields() []Field {
	return append([]Field{{Name: "slug", Value: &p.Slug, Heading: true, Label: "Slug",
		Help: "Lower-case letters, digits and hyphens. Left empty, it is made from the name."}}, p.Fields()...)
}

// AllFields lists the fields of a domain.
func (d *Domain) AllFields() []Field {
	return append([]Field{{Name: "domain", Value: &d.Name, Heading: true, Label: "Domain", Required: true,
		Help: "A name, or *.name for everything below it."}}, d.Fields()...)
}

// AllFields lists the fields of a template.
func (t *Template) AllFields() []Field {
	return append([]Field{{Name: "code", Value: &t.Code, Heading: true, Label: "Code", Required: true,
		Help: "What callers name, such as WELCOME."}}, t.Fields()...)
}

// AllFields lists the fields of a key Its hash counts as a secret.
func (k *Key) AllFields() []Field {
	var owner *string
	if k.Owner != "" {
		owner = &k.Owner
	}
	return []Field{
		{Name: "name", Value: &k.Name, Heading: true, Label: "Name", Required: true},
		{Name: "id", Value: &k.ID},
		{Name: "key", File: "hash", Value: &Secret{Source: SecretSealed, Ref: string(k.Hash[:])}},
		{Name: "allow", Value: k.Allow.Words(), OneOf: Permissions, Label: "May"},
		{Name: "projects", Value: k.Projects, Label: "Projects",
			Help: "One slug a line. Left empty, the key covers every project."},
		{Name: "owner", Value: &owner, Label: "Owner", Unset: "nobody",
			Help: "The key covers the projects with this owner, and those of its list alone."},
		{Name: "expiresAt", Value: k.ExpiresAt},
	}
}

// AllFields lists the values that the defaults block sets, under the names of their blocks.
func (d *Defaults) AllFields() (fields []Field) {
	if d.Service != nil {
		fields = appendPart(fields, "serviceSettings", d.Service.Fields(), d.Service.Said)
	}
	if d.Auth != nil {
		fields = appendPart(fields, "authSettings", d.Auth.Fields(), d.Auth.Said)
	}
	if d.SMTP != nil {
		fields = appendPart(fields, "smtpConfig", d.SMTP.Fields(), differing(newSMTPConfig().Fields(), d.SMTP.Fields()))
	}
	if d.Verification != nil {
		fields = appendPart(fields, "verification", d.Verification.AllFields(), ^FieldSet(0))
	}
	return fields
}

// newDefaultsFields lists what a defaults block can set.
func newDefaultsFields() (fields []Field) {
	const all = ^FieldSet(0)
	fields = appendPart(fields, "serviceSettings", NewFields(KindServiceSettings), all)
	fields = appendPart(fields, "authSettings", NewFields(KindAuthSettings), all)
	fields = appendPart(fields, "smtpConfig", NewFields(KindSMTPConfig), all)
	return appendPart(fields, "verification", new(Verification).AllFields(), all)
}

// appendPart appends the fields of a block inside the defaults block that are in said.
func appendPart(fields []Field, block string, part []Field, said FieldSet) []Field {
	for i, f := range part {
		if said.Has(i) {
			f.Name = block + "." + f.Name
			fields = append(fields, f)
		}
	}
	return fields
}

// differing returns which fields of one kind have another value.
func differing(a, b []Field) (set FieldSet) {
	for i := range a {
		if !a[i].Same(b[i]) {
			set = set.With(i)
		}
	}
	return set
}

// AllFields lists the fields of the sealing block.
func (s *Sealing) AllFields() []Field {
	return []Field{{Name: "recipients", Value: s.Recipients, Label: "Recipients"},
		{Name: "require", Value: &s.Require, Label: "Secrets must be sealed"}}
}
