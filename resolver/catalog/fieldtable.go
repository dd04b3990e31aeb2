package catalog

// The tables below list all fields of a noun, by their names in the API: what the block's label says, and the
// noun's Fields. The audit trail, requests of the API, the client, the merge, forms and explain take them from here.

// NewFields lists the fields of something new of a kind, with the values that the API sets where a request does not have
// them. nil: the kind has no such table.
func NewFields(k Kind) []Field {
	switch k {
	case KindProject:
		return (&Project{Status: StatusDraft}).AllFields()
	case KindDomain:
		return (&Domain{Active: true}).AllFields()
	case KindServiceSettings:
		return new(ServiceSettings).Fields()
	case KindAuthSettings:
		return new(AuthSettings).Fields()
	case KindSMTPConfig:
		return (&SMTPConfig{Active: true}).Fields()
	case KindTemplate:
		return (&Template{Active: true}).AllFields()
	}
	return nil
}

// AllFields lists the project's own fields for the audit trail.
func (p *Project) AllFields() []Field {
	return append([]Field{{Name: "slug", Value: &p.Slug, Label: "Slug",
		Help: "Lower-case letters, digits and hyphens. Left empty, it is made from the name."}}, p.Fields()...)
}

// AllFields lists the fields of a domain for the audit trail.
func (d *Domain) AllFields() []Field {
	return append([]Field{{Name: "domain", Value: &d.Name, Label: "Domain", Required: true,
		Help: "A name, or *.name for everything below it."}}, d.Fields()...)
}

// AllFields lists the fields of a template for the audit trail.
func (t *Template) AllFields() []Field {
	return append([]Field{{Name: "code", Value: &t.Code, Label: "Code", Required: true,
		Help: "What callers name, such as WELCOME."}}, t.Fields()...)
}

// AllFields lists the fields of a key for the audit trail. Its hash counts as a secret.
func (k *Key) AllFields() []Field {
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

// AllFields lists the values that the defaults block sets, under the names of their blocks.
func (d *Defaults) AllFields() (fields []Field) {
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
		add("verification", d.Verification.AllFields(), ^FieldSet(0))
	}
	return fields
}

// AllFields lists the fields of the sealing block.
func (s *Sealing) AllFields() []Field {
	return []Field{{Name: "recipients", Value: s.Recipients}, {Name: "require", Value: &s.Require}}
}

