package catalog

import "strings"

// An Object is one thing that files declare: what a difference, the audit trail and a permission speak of.
type Object struct {
	Kind      Kind
	ProjectID int64  // 0: it belongs to no project
	Slug      string // of its project; "": it belongs to none, or the record does not have it
	Name      string // slug, domain, template code, name of what has one; "" where there is one at most
	UUID      UUID   // zero: the kind has none, or it is not known
	ID        int64  // 0 likewise
	Said      FieldSet
	// Fields lists the fields, by the names of the kind's table, see NewFields.
	Fields func() []Field
}

// Noun names the object's kind in the actions of the audit trail.
func (o *Object) Noun() string {
	if o.Kind == KindTemplate && o.ProjectID == 0 {
		return nounDefaultTemplate
	}
	return strings.ReplaceAll(string(o.Kind), "_", "-")
}

const nounDefaultTemplate = "default-template"

// KindOfNoun returns the kind of the objects that the actions of the audit trail name by noun. It may be none that
// KnownKind knows.
func KindOfNoun(noun string) Kind {
	if noun == nounDefaultTemplate {
		return KindTemplate
	}
	return Kind(strings.ReplaceAll(noun, "-", "_"))
}

// Lasts reports whether an object of the kind exists as long as its project, with default values from the start.
func (k Kind) Lasts() bool { return k == KindServiceSettings || k == KindAuthSettings }

// Single reports whether all files have one block of the kind, which changes and neither comes nor goes.
func (k Kind) Single() bool { return k == KindDefaults || k == KindSealing }

// Named reports whether objects of the kind are told apart by their names. Of the others a project has one at most, or
// all files have.
func (k Kind) Named() bool {
	switch k {
	case KindDomain, KindTemplate, KindKey, KindEdge, KindWebhook, KindLogin, KindInbound:
		return true
	}
	return false
}

// Object returns the project without the blocks inside it.
func (p *Project) Object() Object {
	return Object{Kind: KindProject, ProjectID: p.ID, Slug: p.Slug, Name: p.Slug, UUID: p.UUID, ID: p.ID,
		Fields: p.AllFields}
}

// Object returns the domain.
func (d *Domain) Object() Object {
	return Object{Kind: KindDomain, ProjectID: d.ProjectID, Name: d.Name, UUID: d.UUID, ID: d.ID, Fields: d.AllFields}
}

// Object returns the template.
func (t *Template) Object() Object {
	return Object{Kind: KindTemplate, ProjectID: t.ProjectID, Name: t.Code, UUID: t.UUID, ID: t.ID, Fields: t.AllFields}
}

// Object returns the key.
func (k *Key) Object() Object { return Object{Kind: KindKey, Name: k.Name, Fields: k.AllFields} }

// Object returns the edge.
func (e *Edge) Object() Object { return Object{Kind: KindEdge, Name: e.Name, Fields: e.AllFields} }

// Object returns the defaults block.
func (d *Defaults) Object() Object { return Object{Kind: KindDefaults, Fields: d.AllFields} }

// Object returns the sealing block.
func (s *Sealing) Object() Object { return Object{Kind: KindSealing, Fields: s.AllFields} }

// ServiceObject returns the project's service settings as they are in force with the defaults block d. With d nil they
// are as the project's block has them.
func (p *ProjectConfig) ServiceObject(d *Defaults) Object {
	return p.part(KindServiceSettings, p.Service.UUID, p.Service.Said,
		func() []Field { s, _ := d.InForce(p); return s.Fields() })
}

// AuthObject is ServiceObject for the auth settings.
func (p *ProjectConfig) AuthObject(d *Defaults) Object {
	return p.part(KindAuthSettings, p.Auth.UUID, p.Auth.Said,
		func() []Field { _, a := d.InForce(p); return a.Fields() })
}

// SMTPObject returns the project's SMTP config, nil if it has none.
func (p *ProjectConfig) SMTPObject() *Object {
	if p.SMTP == nil {
		return nil
	}
	o := p.part(KindSMTPConfig, p.SMTP.UUID, 0, p.SMTP.Fields)
	return &o
}

func (p *ProjectConfig) part(k Kind, uuid UUID, said FieldSet, fields func() []Field) Object {
	return Object{Kind: k, ProjectID: p.Project.ID, Slug: p.Project.Slug, UUID: uuid, Said: said, Fields: fields}
}

// parts lists what the project's block holds besides the project's own fields; nothing of a project that is nil.
func (p *ProjectConfig) parts() (list []*Object) {
	if p == nil {
		return nil
	}
	add := func(o Object) {
		o.ProjectID, o.Slug = p.Project.ID, p.Project.Slug // the enclosing block decides
		list = append(list, &o)
	}
	for i := range p.Domains {
		add(p.Domains[i].Object())
	}
	add(p.ServiceObject(nil))
	add(p.AuthObject(nil))
	if o := p.SMTPObject(); o != nil {
		add(*o)
	}
	for i := range p.Templates {
		add(p.Templates[i].Object())
	}
	return list
}

// others lists what belongs to no project.
func (d *Declared) others() (list []*Object) {
	add := func(o Object) { list = append(list, &o) }
	for i := range d.Templates {
		add(d.Templates[i].Object())
	}
	if d.Defaults != nil {
		add(d.Defaults.Object())
	}
	for i := range d.Keys {
		add(d.Keys[i].Object())
	}
	for i := range d.Edges {
		add(d.Edges[i].Object())
	}
	for i := range d.Webhooks {
		add(d.Webhooks[i].Object())
	}
	for i := range d.Logins {
		add(d.Logins[i].Object())
	}
	for i := range d.Inbounds {
		add(d.Inbounds[i].Object())
	}
	if d.Sealing != nil {
		add(d.Sealing.Object())
	}
	return list
}

// Objects lists all objects of d, what a project's block holds after the project.
func (d *Declared) Objects() (list []*Object) {
	for i := range d.Projects {
		o := d.Projects[i].Project.Object()
		list = append(append(list, &o), d.Projects[i].parts()...)
	}
	return append(list, d.others()...)
}
