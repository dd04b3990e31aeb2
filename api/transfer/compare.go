package transfer

import (
	"slices"
	"strings"

	"fingerpost/api/client"
	"fingerpost/resolver/catalog"
)

// A view lists the fields that can be compared; a nil list means all.
type view struct {
	project, domain, service, auth, smtp, template []string
	ids                                            bool // uuid and id, too
}

// everything is the view of a store.
var everything = view{ids: true}

// apiView returns the view that every API has.
func apiView() view {
	return view{
		project: client.Fields(catalog.KindProject), domain: client.Fields(catalog.KindDomain),
		service: client.Fields(catalog.KindServiceSettings), auth: client.Fields(catalog.KindAuthSettings),
		smtp: client.Fields(catalog.KindSMTPConfig), template: client.Fields(catalog.KindTemplate),
	}
}

// seenBy returns the API's view of a project.
func seenBy(f *client.Project, ids bool) view {
	v := apiView()
	v.ids = ids
	if f.Flat {
		v.service = append(v.service, client.FlatFields(catalog.KindServiceSettings)...)
		v.auth = append(v.auth, client.FlatFields(catalog.KindAuthSettings)...)
	}
	return v
}

// compareProject returns the changes that turn have into want; one of them may be nil. renumbered counts the objects
// whose uuid or id differ if v does not compare them.
func compareProject(have *client.Project, want *catalog.ProjectConfig, v view) (changes []Change, renumbered int) {
	c := comparison{view: v}
	if v.project != nil && (have == nil || have.Full) {
		c.view.project = append(slices.Clone(v.project), "labels", "owner")
		c.view.domain = append(slices.Clone(v.domain), "certificates", "verified")
	}
	switch {
	case have == nil:
		c.slug = want.Project.Slug
		c.add(want)
	case want == nil:
		c.slug = have.Project.Slug
		c.remove(&have.ProjectConfig)
	default:
		c.slug = want.Project.Slug
		c.project(have, want)
	}
	return c.changes, c.renumbered
}

type comparison struct {
	view
	slug       string
	changes    []Change
	renumbered int
}

func (c *comparison) note(action string, kind catalog.Kind, name string, fields []FieldChange) {
	if action == Changed && len(fields) == 0 {
		return
	}
	if action == Added {
		for i := range fields {
			fields[i].Old = nil
		}
	}
	if fields == nil {
		fields = []FieldChange{}
	}
	c.changes = append(c.changes, Change{action, kind, c.slug, name, fields})
}

func (c *comparison) add(want *catalog.ProjectConfig) {
	plain := catalog.Project{Status: catalog.StatusDraft}
	c.note(Added, catalog.KindProject, c.slug, diffFields(plain.Fields(), want.Project.Fields(), c.view.project))
	for i := range want.Domains {
		c.addDomain(&want.Domains[i])
	}
	service, auth := catalog.NewServiceSettings(), catalog.NewAuthSettings()
	if fields := diffFields(service.Fields(), want.Service.Fields(), c.service); len(fields) > 0 {
		c.note(Added, catalog.KindServiceSettings, "", fields)
	}
	if fields := diffFields(auth.Fields(), want.Auth.Fields(), c.auth); len(fields) > 0 {
		c.note(Added, catalog.KindAuthSettings, "", fields)
	}
	c.compareSMTP(nil, want.SMTP)
	c.templates(nil, want.Templates, nil)
}

func (c *comparison) remove(have *catalog.ProjectConfig) {
	c.note(Removed, catalog.KindProject, c.slug, nil)
	for i := range have.Domains {
		c.note(Removed, catalog.KindDomain, have.Domains[i].Name, nil)
	}
	c.compareSMTP(have.SMTP, nil)
	c.templates(have.Templates, nil, nil)
}

func (c *comparison) project(have *client.Project, want *catalog.ProjectConfig) {
	h, w := &have.Project, &want.Project
	fields := diffFields(
		append([]catalog.Field{{Name: "slug", Value: &h.Slug}}, h.Fields()...),
		append([]catalog.Field{{Name: "slug", Value: &w.Slug}}, w.Fields()...), c.view.project)
	fields = append(fields, c.identity(h.UUID, w.UUID, h.ID, w.ID)...)
	c.note(Changed, catalog.KindProject, w.Slug, fields)
	c.domains(have.Domains, want.Domains)
	c.note(Changed, catalog.KindServiceSettings, "", append(diffFields(have.Service.Fields(), want.Service.Fields(),
		c.service),
		c.settingsIdentity(have.Service.UUID, want.Service.UUID)...))
	c.note(Changed, catalog.KindAuthSettings, "", append(diffFields(have.Auth.Fields(), want.Auth.Fields(), c.auth),
		c.settingsIdentity(have.Auth.UUID, want.Auth.UUID)...))
	if have.Mail {
		c.compareSMTP(have.SMTP, want.SMTP)
		c.templates(have.Templates, want.Templates, have.Untold)
	}
}

// identity compares uuid and id. A uuid that the server does not return is not compared.
func (c *comparison) identity(haveUUID, wantUUID catalog.UUID, have, want int64) (fields []FieldChange) {
	if haveUUID != (catalog.UUID{}) && haveUUID != wantUUID {
		fields = append(fields, FieldChange{Field: "uuid", Old: haveUUID.String(), New: wantUUID.String()})
	}
	if have != want {
		fields = append(fields, FieldChange{Field: "id", Old: have, New: want})
	}
	if !c.ids && len(fields) > 0 {
		c.renumbered++
		return nil
	}
	return fields
}

// settingsIdentity compares the identities of settings, which only a store has.
func (c *comparison) settingsIdentity(have, want catalog.UUID) []FieldChange {
	if !c.ids || have == (catalog.UUID{}) || have == want {
		return nil
	}
	return []FieldChange{{Field: "uuid", Old: have.String(), New: want.String()}}
}

func (c *comparison) addDomain(d *catalog.Domain) {
	plain, names := catalog.Domain{Active: true}, c.domain
	if names != nil { // a server takes these, but its lists do not tell them
		names = append(slices.Clone(names), "certificates", "verified")
	}
	c.note(Added, catalog.KindDomain, d.Name, diffFields(plain.Fields(), d.Fields(), names))
}

func (c *comparison) domains(have, want []catalog.Domain) {
	for _, p := range pairDomains(have, want) {
		switch {
		case p.have == nil:
			c.addDomain(p.want)
		case p.want == nil:
			c.note(Removed, catalog.KindDomain, p.have.Name, nil)
		default:
			fields := diffFields(
				append([]catalog.Field{{Name: "domain", Value: &p.have.Name}}, p.have.Fields()...),
				append([]catalog.Field{{Name: "domain", Value: &p.want.Name}}, p.want.Fields()...), c.domain)
			fields = append(fields, c.identity(p.have.UUID, p.want.UUID, p.have.ID, p.want.ID)...)
			c.note(Changed, catalog.KindDomain, p.want.Name, fields)
		}
	}
}

type domainPair struct{ have, want *catalog.Domain }

// pairDomains pairs domains by name, and the remaining ones by id: a changed name. The pairs are sorted by name.
func pairDomains(have, want []catalog.Domain) (pairs []domainPair) {
	byName, byID := map[string]*catalog.Domain{}, map[int64]*catalog.Domain{}
	for i := range have {
		byName[have[i].Name] = &have[i]
	}
	var left []*catalog.Domain
	for i := range want {
		w := &want[i]
		if h := byName[w.Name]; h != nil {
			pairs = append(pairs, domainPair{h, w})
			delete(byName, w.Name)
		} else {
			left = append(left, w)
		}
	}
	for _, h := range byName {
		byID[h.ID] = h
	}
	for _, w := range left {
		h := byID[w.ID]
		pairs = append(pairs, domainPair{h, w})
		if h != nil {
			delete(byID, w.ID)
			delete(byName, h.Name)
		}
	}
	for _, h := range byName {
		pairs = append(pairs, domainPair{h, nil})
	}
	name := func(p domainPair) string {
		if p.want != nil {
			return p.want.Name
		}
		return p.have.Name
	}
	slices.SortFunc(pairs, func(a, b domainPair) int { return strings.Compare(name(a), name(b)) })
	return pairs
}

func (c *comparison) compareSMTP(have, want *catalog.SMTPConfig) {
	if c.smtp != nil && !want.HasServer() { // APIs have no config without a host
		want = nil
	}
	switch {
	case have == nil && want == nil:
	case have == nil:
		none := catalog.SMTPConfig{}
		c.note(Added, catalog.KindSMTPConfig, "", diffFields(none.Fields(), want.Fields(), c.smtp))
	case want == nil:
		c.note(Removed, catalog.KindSMTPConfig, "", nil)
	default:
		c.note(Changed, catalog.KindSMTPConfig, "", append(diffFields(have.Fields(), want.Fields(), c.smtp),
			c.settingsIdentity(have.UUID, want.UUID)...))
	}
}

// templates compares by code, except unknown ones.
func (c *comparison) templates(have, want []catalog.Template, unknown client.Untold) {
	byCode := map[string]*catalog.Template{}
	for i := range have {
		byCode[have[i].Code] = &have[i]
	}
	for i := range want {
		w := &want[i]
		h := byCode[w.Code]
		if h == nil {
			plain := catalog.Template{Active: true}
			c.note(Added, catalog.KindTemplate, w.Code, diffFields(plain.Fields(), w.Fields(), c.template))
			continue
		}
		delete(byCode, w.Code)
		names := c.template
		if fields := unknown[w.Code]; fields != nil {
			names = slices.DeleteFunc(slices.Clone(names), func(s string) bool { return slices.Contains(fields, s) })
		}
		c.note(Changed, catalog.KindTemplate, w.Code,
			append(diffFields(h.Fields(), w.Fields(), names), c.identity(h.UUID, w.UUID, h.ID, w.ID)...))
	}
	for i := range have {
		if byCode[have[i].Code] != nil {
			c.note(Removed, catalog.KindTemplate, have[i].Code, nil)
		}
	}
}

// diffFields lists the named fields whose values differ.
func diffFields(have, want []catalog.Field, names []string) (out []FieldChange) {
	for i, w := range want {
		if names != nil && !slices.Contains(names, w.Name) || w.Same(have[i]) {
			continue
		}
		if labels, ok := w.Value.(*[]catalog.Label); ok {
			out = append(out, diffLabels(*have[i].Value.(*[]catalog.Label), *labels)...)
			continue
		}
		f := FieldChange{Field: catalog.Snake(w.Name)}
		if _, f.Secret = w.Value.(*catalog.Secret); !f.Secret {
			f.Old, f.New = have[i].Plain(), w.Plain()
		}
		out = append(out, f)
	}
	return out
}

// diffLabels lists the labels whose values differ, each as a field "labels.<name>", sorted by name.
func diffLabels(have, want []catalog.Label) (out []FieldChange) {
	values := map[string]string{}
	for _, l := range have {
		values[l.Name] = l.Value
	}
	for _, l := range want {
		old, had := values[l.Name]
		delete(values, l.Name)
		switch {
		case !had:
			out = append(out, FieldChange{Field: "labels." + l.Name, New: l.Value})
		case old != l.Value:
			out = append(out, FieldChange{Field: "labels." + l.Name, Old: old, New: l.Value})
		}
	}
	for name, old := range values {
		out = append(out, FieldChange{Field: "labels." + name, Old: old})
	}
	slices.SortFunc(out, func(a, b FieldChange) int { return strings.Compare(a.Field, b.Field) })
	return out
}
