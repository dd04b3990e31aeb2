package main

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"fingerpost/api/client"
	"fingerpost/resolver/catalog"
)

// What becomes of an object.
const (
	actionAdd    = "add"
	actionChange = "change"
	actionRemove = "remove"
)

// A change is what becomes of one object. Its JSON is that of "plan --json".
type change struct {
	Action  string        `json:"action"`            // add, change, remove
	Kind    catalog.Kind  `json:"kind"`              // the block's name in the files
	Project string        `json:"project,omitempty"` // the slug, in the files where they have it
	Name    string        `json:"name,omitempty"`    // slug, domain, template code or key name
	Fields  []fieldChange `json:"fields"`            // of what is added: those that differ from what would hold without them
}

// A fieldChange is what becomes of one field. A secret never has values.
type fieldChange struct {
	Field  string `json:"field"` // as files write it
	Old    any    `json:"old"`
	New    any    `json:"new"`
	Secret bool   `json:"secret,omitempty"`
}

// A view says which fields can be compared; a nil list means all.
type view struct {
	project, domain, service, auth, smtp, template []string
	ids                                            bool // uuid and id, too
}

// everything is the view of a store.
var everything = view{ids: true}

// apiView is the view that every API gives.
func apiView() view {
	return view{
		project: client.Fields(catalog.KindProject), domain: client.Fields(catalog.KindDomain),
		service: client.Fields(catalog.KindServiceSettings), auth: client.Fields(catalog.KindAuthSettings),
		smtp: client.Fields(catalog.KindSMTPConfig), template: client.Fields(catalog.KindTemplate),
	}
}

// seenBy is the view that the API gives of a project.
func seenBy(f *client.Project, ids bool) view {
	v := apiView()
	v.ids = ids
	if f.Flat {
		v.service = append(v.service, client.FlatFields(catalog.KindServiceSettings)...)
		v.auth = append(v.auth, client.FlatFields(catalog.KindAuthSettings)...)
	}
	return v
}

// compareProject says what turns have into want; one of them may be nil. renumbered counts the objects whose uuid or id
// differ where v does not compare them.
func compareProject(have *client.Project, want *catalog.ProjectConfig, v view) (changes []change, renumbered int) {
	c := comparison{view: v}
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
	changes    []change
	renumbered int
}

func (c *comparison) note(action string, kind catalog.Kind, name string, fields []fieldChange) {
	if action == actionChange && len(fields) == 0 {
		return
	}
	if action == actionAdd {
		for i := range fields {
			fields[i].Old = nil
		}
	}
	if fields == nil {
		fields = []fieldChange{}
	}
	c.changes = append(c.changes, change{action, kind, c.slug, name, fields})
}

func (c *comparison) add(want *catalog.ProjectConfig) {
	plain := catalog.Project{Status: catalog.StatusDraft}
	c.note(actionAdd, catalog.KindProject, c.slug, diffFields(plain.Fields(), want.Project.Fields(), c.view.project))
	for i := range want.Domains {
		c.addDomain(&want.Domains[i])
	}
	service, auth := catalog.NewServiceSettings(), catalog.NewAuthSettings()
	if fields := diffFields(service.Fields(), want.Service.Fields(), c.service); len(fields) > 0 {
		c.note(actionAdd, catalog.KindServiceSettings, "", fields)
	}
	if fields := diffFields(auth.Fields(), want.Auth.Fields(), c.auth); len(fields) > 0 {
		c.note(actionAdd, catalog.KindAuthSettings, "", fields)
	}
	c.compareSMTP(nil, want.SMTP)
	c.templates(nil, want.Templates, nil)
}

func (c *comparison) remove(have *catalog.ProjectConfig) {
	c.note(actionRemove, catalog.KindProject, c.slug, nil)
	for i := range have.Domains {
		c.note(actionRemove, catalog.KindDomain, have.Domains[i].Name, nil)
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
	c.note(actionChange, catalog.KindProject, w.Slug, fields)
	c.domains(have.Domains, want.Domains)
	c.note(actionChange, catalog.KindServiceSettings, "", append(diffFields(have.Service.Fields(), want.Service.Fields(), c.service),
		c.settingsIdentity(have.Service.UUID, want.Service.UUID)...))
	c.note(actionChange, catalog.KindAuthSettings, "", append(diffFields(have.Auth.Fields(), want.Auth.Fields(), c.auth),
		c.settingsIdentity(have.Auth.UUID, want.Auth.UUID)...))
	if have.Mail {
		c.compareSMTP(have.SMTP, want.SMTP)
		c.templates(have.Templates, want.Templates, have.Untold)
	}
}

// identity compares uuid and id. A uuid that the server does not tell is not compared.
func (c *comparison) identity(haveUUID, wantUUID catalog.UUID, have, want int64) (fields []fieldChange) {
	if haveUUID != (catalog.UUID{}) && haveUUID != wantUUID {
		fields = append(fields, fieldChange{Field: "uuid", Old: haveUUID.String(), New: wantUUID.String()})
	}
	if have != want {
		fields = append(fields, fieldChange{Field: "id", Old: have, New: want})
	}
	if !c.ids && len(fields) > 0 {
		c.renumbered++
		return nil
	}
	return fields
}

// settingsIdentity compares what only a store tells of settings.
func (c *comparison) settingsIdentity(have, want catalog.UUID) []fieldChange {
	if !c.ids || have == (catalog.UUID{}) || have == want {
		return nil
	}
	return []fieldChange{{Field: "uuid", Old: have.String(), New: want.String()}}
}

func (c *comparison) addDomain(d *catalog.Domain) {
	plain := catalog.Domain{Active: true}
	c.note(actionAdd, catalog.KindDomain, d.Name, diffFields(plain.Fields(), d.Fields(), c.domain))
}

func (c *comparison) domains(have, want []catalog.Domain) {
	for _, p := range pairDomains(have, want) {
		switch {
		case p.have == nil:
			c.addDomain(p.want)
		case p.want == nil:
			c.note(actionRemove, catalog.KindDomain, p.have.Name, nil)
		default:
			fields := diffFields(
				append([]catalog.Field{{Name: "domain", Value: &p.have.Name}}, p.have.Fields()...),
				append([]catalog.Field{{Name: "domain", Value: &p.want.Name}}, p.want.Fields()...), c.domain)
			fields = append(fields, c.identity(p.have.UUID, p.want.UUID, p.have.ID, p.want.ID)...)
			c.note(actionChange, catalog.KindDomain, p.want.Name, fields)
		}
	}
}

type domainPair struct{ have, want *catalog.Domain }

// pairDomains pairs domains by name, and those that are left by id: a name that was changed. The pairs come by name.
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
	switch {
	case have == nil && want == nil:
	case have == nil:
		none := catalog.SMTPConfig{}
		c.note(actionAdd, catalog.KindSMTPConfig, "", diffFields(none.Fields(), want.Fields(), c.smtp))
	case want == nil:
		c.note(actionRemove, catalog.KindSMTPConfig, "", nil)
	default:
		c.note(actionChange, catalog.KindSMTPConfig, "", append(diffFields(have.Fields(), want.Fields(), c.smtp),
			c.settingsIdentity(have.UUID, want.UUID)...))
	}
}

// templates compares by code, but for what is not known.
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
			c.note(actionAdd, catalog.KindTemplate, w.Code, diffFields(plain.Fields(), w.Fields(), c.template))
			continue
		}
		delete(byCode, w.Code)
		names := c.template
		if fields := unknown[w.Code]; fields != nil {
			names = slices.DeleteFunc(slices.Clone(names), func(s string) bool { return slices.Contains(fields, s) })
		}
		c.note(actionChange, catalog.KindTemplate, w.Code,
			append(diffFields(h.Fields(), w.Fields(), names), c.identity(h.UUID, w.UUID, h.ID, w.ID)...))
	}
	for i := range have {
		if byCode[have[i].Code] != nil {
			c.note(actionRemove, catalog.KindTemplate, have[i].Code, nil)
		}
	}
}

// diffFields lists the named fields whose values differ.
func diffFields(have, want []catalog.Field, names []string) (out []fieldChange) {
	for i, w := range want {
		if names != nil && !slices.Contains(names, w.Name) || w.Same(have[i]) {
			continue
		}
		f := fieldChange{Field: catalog.Snake(w.Name)}
		if _, f.Secret = w.Value.(*catalog.Secret); !f.Secret {
			f.Old, f.New = plainValue(have[i].Value), plainValue(w.Value)
		}
		out = append(out, f)
	}
	return out
}

// plainValue is what a Field points to, nil for a null text.
func plainValue(v any) any {
	switch v := v.(type) {
	case *bool:
		return *v
	case *int:
		return *v
	case *string:
		return *v
	case **string:
		if *v == nil {
			return nil
		}
		return **v
	}
	panic("fingerpost: a Field of a type that no case handles: impossible while Fields and this switch agree")
}

// compareKeys says what turns the keys of a store into those of the files. A hash counts as a secret.
func compareKeys(have, want []catalog.Key) []change {
	var c comparison
	byName := map[string]*catalog.Key{}
	for i := range have {
		byName[have[i].Name] = &have[i]
	}
	for i := range want {
		w := &want[i]
		h := byName[w.Name]
		delete(byName, w.Name)
		if h == nil {
			c.note(actionAdd, catalog.KindKey, w.Name, keyFields(&catalog.Key{}, w))
			continue
		}
		c.note(actionChange, catalog.KindKey, w.Name, keyFields(h, w))
	}
	for i := range have {
		if byName[have[i].Name] != nil {
			c.note(actionRemove, catalog.KindKey, have[i].Name, nil)
		}
	}
	return c.changes
}

func keyFields(have, want *catalog.Key) (fields []fieldChange) {
	add := func(name string, old, now any) {
		if !reflect.DeepEqual(old, now) {
			fields = append(fields, fieldChange{Field: name, Old: old, New: now})
		}
	}
	add("id", have.ID, want.ID)
	if have.Hash != want.Hash {
		fields = append(fields, fieldChange{Field: "hash", Secret: true})
	}
	add("allow", strings.Join(have.Allow.Words(), ", "), strings.Join(want.Allow.Words(), ", "))
	add("projects", slugList(have.Projects), slugList(want.Projects))
	add("expires_at", moment(have.ExpiresAt), moment(want.ExpiresAt))
	return fields
}

// slugList is nil for every project.
func slugList(slugs []string) any {
	if slugs == nil {
		return nil
	}
	return strings.Join(slugs, ", ")
}

func moment(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format("2006-01-02T15:04:05")
}

// compareDefaults says what becomes of the defaults block. What a block does not say is nil.
func compareDefaults(have, want *catalog.Defaults) []change {
	var fields []fieldChange
	h, w := partsOf(have), partsOf(want)
	for i, part := range w {
		for k := range part.fields {
			f := fieldChange{Field: part.block + "." + catalog.Snake(part.fields[k].Name)}
			hadOne, hasOne := h[i].said.Has(k), part.said.Has(k)
			if !hadOne && !hasOne || hadOne && hasOne && part.fields[k].Same(h[i].fields[k]) {
				continue
			}
			if _, f.Secret = part.fields[k].Value.(*catalog.Secret); !f.Secret {
				if hadOne {
					f.Old = plainValue(h[i].fields[k].Value)
				}
				if hasOne {
					f.New = plainValue(part.fields[k].Value)
				}
			}
			fields = append(fields, f)
		}
	}
	return single(catalog.KindDefaults, have != nil, want != nil, fields)
}

type settingsPart struct {
	block  string
	fields []catalog.Field
	said   catalog.FieldSet
}

func partsOf(d *catalog.Defaults) [2]settingsPart {
	service, auth := catalog.NewServiceSettings(), catalog.NewAuthSettings()
	if d != nil && d.Service != nil {
		service = *d.Service
	}
	if d != nil && d.Auth != nil {
		auth = *d.Auth
	}
	return [2]settingsPart{
		{string(catalog.KindServiceSettings), service.Fields(), service.Said},
		{string(catalog.KindAuthSettings), auth.Fields(), auth.Said},
	}
}

func compareSealing(have, want *catalog.Sealing) []change {
	h, w := catalog.Sealing{}, catalog.Sealing{}
	if have != nil {
		h = *have
	}
	if want != nil {
		w = *want
	}
	var fields []fieldChange
	if !slices.Equal(h.Recipients, w.Recipients) {
		fields = append(fields, fieldChange{Field: "recipients", Old: strings.Join(h.Recipients, ", "), New: strings.Join(w.Recipients, ", ")})
	}
	if h.Require != w.Require {
		fields = append(fields, fieldChange{Field: "require", Old: h.Require, New: w.Require})
	}
	return single(catalog.KindSealing, have != nil, want != nil, fields)
}

// single is the change of a block of which there is one in all files.
func single(kind catalog.Kind, had, has bool, fields []fieldChange) []change {
	var c comparison
	switch {
	case had && has:
		c.note(actionChange, kind, "", fields)
	case has:
		c.note(actionAdd, kind, "", fields)
	case had:
		c.note(actionRemove, kind, "", nil)
	}
	return c.changes
}
