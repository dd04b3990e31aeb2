// Package overlay shows the state of a proposal, of which nothing is live (api/README.md, Proposals): what is live, with
// other declarations in some files.
//
// An Objects reads the few files that were put into it from memory, and all else from the Resolver. Each object that a
// file declares live is hidden by the file, and each that it declares in the proposal stands in its place. An object
// keeps the times that it has live as long as its content is the same.
//
// A project that none of the files declares may have another file in the proposal. Ready lets the caller put it before
// the project is shown, so that one call decodes few of the files.
//
// It reads, and changes nothing. Package configsrc decodes and judges the files of a proposal, package proposals brings
// both together. Resolve never answers from an Objects. One is for one call: what is live may change between two reads.
package overlay

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// An Objects reads what a proposal declares. It is for one call, and not for concurrent use.
type Objects struct {
	live   *resolver.Resolver
	at     time.Time // of what is not live
	files  map[string]*overlaid
	hidden map[hiddenObject]bool // what the files declare live

	// Ready, if set, is called before a project is shown that none of the files declares. It may put its file.
	Ready func(project catalog.UUID) error
}

type overlaid struct {
	declared *catalog.Declared
	content  []byte
}

// A hiddenObject is told by its id, or by its name if it has one that is unique.
type hiddenObject struct {
	kind catalog.Kind
	id   int64
	name string
}

// New returns an Objects without files. at is the time of what differs from what is live.
func New(live *resolver.Resolver, at time.Time) *Objects {
	return &Objects{live: live, at: at, files: map[string]*overlaid{}, hidden: map[hiddenObject]bool{}}
}

// Put replaces what a file declares; nil if it is gone or cannot be read. The Objects keeps content, and copies d.
func (o *Objects) Put(path string, d *catalog.Declared, content []byte) error {
	row, err := o.live.File(path)
	switch {
	case err == nil:
		for _, ref := range row.Refs {
			o.hidden[hiddenBy(ref)] = true
		}
	case !catalog.IsNotFound(err):
		return err
	}
	if d == nil {
		d = new(catalog.Declared)
	}
	f := &overlaid{d.Clone(), content}
	if err := o.time(f.declared); err != nil {
		return err
	}
	o.files[path] = f
	return nil
}

func hiddenBy(ref catalog.Ref) hiddenObject {
	switch ref.Kind {
	case catalog.KindProject, catalog.KindTemplate:
		return hiddenObject{kind: ref.Kind, id: ref.ID}
	}
	return hiddenObject{kind: ref.Kind, name: ref.Name}
}

// time sets the times of what a file declares: those that it has live if it is the same there.
func (o *Objects) time(d *catalog.Declared) error {
	for i := range d.Projects {
		p := &d.Projects[i]
		p.Project.CreatedAt, p.Project.UpdatedAt = o.at, o.at
		was, _, err := o.live.ProjectConfig(p.Project.ID)
		if catalog.IsNotFound(err) {
			was, err = new(catalog.ProjectConfig), nil
		}
		if err != nil {
			return err
		}
		if now := *p; was.Project.ID != 0 {
			p.Project.CreatedAt = was.Project.CreatedAt
			now.Project.CreatedAt, now.Project.UpdatedAt = was.Project.CreatedAt, was.Project.UpdatedAt
			now.Domains, now.Templates = was.Domains, was.Templates
			if reflect.DeepEqual(&now, was) {
				p.Project.UpdatedAt = was.Project.UpdatedAt
			}
		}
		for j := range p.Domains {
			d := &p.Domains[j]
			d.CreatedAt, d.UpdatedAt = o.at, o.at
			if was, err := o.live.Domain(p.Project.ID, d.ID); err == nil {
				d.CreatedAt = was.CreatedAt
				if now := *d; d.Name == was.Name && catalog.SameFields(now.Fields(), was.Fields()) {
					d.UpdatedAt = was.UpdatedAt
				}
			} else if !catalog.IsNotFound(err) {
				return err
			}
		}
	}
	return nil
}

// find returns the project of a file of the Objects, nil if there is none.
func (o *Objects) find(is func(p *catalog.ProjectConfig) bool) *catalog.ProjectConfig {
	for _, f := range o.files {
		for i := range f.declared.Projects {
			if is(&f.declared.Projects[i]) {
				return &f.declared.Projects[i]
			}
		}
	}
	return nil
}

func (o *Objects) findID(id int64) *catalog.ProjectConfig {
	return o.find(func(p *catalog.ProjectConfig) bool { return p.Project.ID == id })
}

// project is Resolver.ProjectConfig.
func (o *Objects) project(id int64) (*catalog.ProjectConfig, *catalog.Defaults, error) {
	if p := o.findID(id); p != nil {
		own := *p
		return &own, o.Defaults(), nil
	}
	if o.hidden[hiddenObject{kind: catalog.KindProject, id: id}] {
		return nil, nil, catalog.NotFound("project")
	}
	p, _, err := o.live.ProjectConfig(id)
	return p, o.Defaults(), err
}

// ready lets the project's file be put.
func (o *Objects) ready(p *catalog.ProjectConfig) error {
	if o.Ready == nil || o.findID(p.Project.ID) != nil {
		return nil
	}
	return o.Ready(p.Project.UUID)
}

// ProjectByID is that of a Resolver.
func (o *Objects) ProjectByID(id int64) (*catalog.Project, error) {
	p, _, err := o.project(id)
	if err == nil {
		err = o.ready(p)
	}
	if err == nil {
		p, _, err = o.project(id)
	}
	if err != nil {
		return nil, err
	}
	return &p.Project, nil
}

// ProjectBySlug is that of a Resolver.
func (o *Objects) ProjectBySlug(slug string) (*catalog.Project, error) {
	if p := o.find(func(p *catalog.ProjectConfig) bool { return p.Project.Slug == slug }); p != nil {
		return o.ProjectByID(p.Project.ID)
	}
	live, err := o.live.ProjectBySlug(slug)
	if err != nil {
		return nil, err
	}
	p, err := o.ProjectByID(live.ID)
	if err == nil && p.Slug != slug {
		return nil, catalog.NotFound("project")
	}
	return p, err
}

// ServiceSettings is that of a Resolver.
func (o *Objects) ServiceSettings(projectID int64) (*catalog.ServiceSettings, error) {
	p, defaults, err := o.project(projectID)
	if err != nil {
		return nil, err
	}
	service, _ := defaults.InForce(p)
	return &service, nil
}

// AuthSettings is that of a Resolver.
func (o *Objects) AuthSettings(projectID int64) (*catalog.AuthSettings, error) {
	p, defaults, err := o.project(projectID)
	if err != nil {
		return nil, err
	}
	_, auth := defaults.InForce(p)
	return &auth, nil
}

// SMTPConfig is that of a Resolver.
func (o *Objects) SMTPConfig(projectID int64) (*catalog.SMTPConfig, error) {
	p, _, err := o.project(projectID)
	if err != nil {
		return nil, err
	}
	if !p.SMTP.HasServer() {
		return nil, catalog.NotFound("SMTP config")
	}
	return p.SMTP, nil
}

// Domains is that of a Resolver.
func (o *Objects) Domains(projectID int64, q resolver.Query) (rows []*catalog.Domain, total int, err error) {
	p := o.findID(projectID)
	if p == nil {
		if _, _, err := o.project(projectID); err != nil {
			return nil, 0, err
		}
		return o.live.Domains(projectID, q)
	}
	for _, d := range p.Domains {
		d.ProjectID = projectID
		rows = append(rows, &d)
	}
	total = len(rows)
	rows, err = resolver.ArrangeDomains(rows, q)
	return rows, total, err
}

// Domain is that of a Resolver.
func (o *Objects) Domain(projectID, domainID int64) (*catalog.Domain, error) {
	rows, _, err := o.Domains(projectID, resolver.Query{})
	if err != nil && !catalog.IsNotFound(err) {
		return nil, err
	}
	for _, d := range rows {
		if d.ID == domainID {
			return d, nil
		}
	}
	return nil, catalog.NotFound("domain")
}

// DomainNamed is that of a Resolver.
func (o *Objects) DomainNamed(name string) (*catalog.Domain, error) {
	var found *catalog.Domain
	o.eachDomain(func(d *catalog.Domain) bool {
		if d.Name == name {
			found = d
		}
		return found == nil
	})
	switch {
	case found != nil:
		return found, nil
	case o.hidden[hiddenObject{kind: catalog.KindDomain, name: name}]:
		return nil, catalog.NotFound("domain")
	}
	return o.live.DomainNamed(name)
}

// Named is that of a Resolver: what is noted is live.
func (o *Objects) Named(name string) (value []byte, found bool, err error) { return o.live.Named(name) }

// DomainsBelow is that of a Resolver.
func (o *Objects) DomainsBelow(suffix string, yield func(*catalog.Domain) bool) error {
	more := true
	o.eachDomain(func(d *catalog.Domain) bool {
		if strings.HasSuffix(d.Name, "."+suffix) && d.Name != "*."+suffix {
			more = yield(d)
		}
		return more
	})
	if !more {
		return nil
	}
	return o.live.DomainsBelow(suffix, func(d *catalog.Domain) bool {
		return o.hidden[hiddenObject{kind: catalog.KindDomain, name: d.Name}] || yield(d)
	})
}

// eachDomain yields the domains of the files of the Objects.
func (o *Objects) eachDomain(yield func(*catalog.Domain) bool) {
	for _, f := range o.files {
		for i := range f.declared.Projects {
			p := &f.declared.Projects[i]
			for _, d := range p.Domains {
				if d.ProjectID = p.Project.ID; !yield(&d) {
					return
				}
			}
		}
	}
}

// Templates is that of a Resolver.
func (o *Objects) Templates(projectID int64, q resolver.Query) (rows []*catalog.Template, total int, err error) {
	if rows, err = o.templates(projectID); err != nil {
		return nil, 0, err
	}
	total = len(rows)
	rows, err = resolver.ArrangeTemplates(rows, q)
	return rows, total, err
}

// templates returns the default templates and a project's own.
func (o *Objects) templates(projectID int64) (rows []*catalog.Template, err error) {
	if _, _, err := o.project(projectID); err != nil {
		return nil, err
	}
	own := o.findID(projectID)
	if rows, err = o.live.TemplatesOf(0); err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(rows, func(t *catalog.Template) bool {
		return o.hidden[hiddenObject{kind: catalog.KindTemplate, id: t.ID}]
	})
	if own == nil {
		live, err := o.live.TemplatesOf(projectID)
		if err != nil {
			return nil, err
		}
		rows = append(rows, live...)
	}
	for _, f := range o.files {
		for _, t := range f.declared.Templates {
			rows = append(rows, &t)
		}
	}
	if own != nil {
		for _, t := range own.Templates {
			t.ProjectID = projectID
			rows = append(rows, &t)
		}
	}
	return rows, nil
}

// Template is that of a Resolver.
func (o *Objects) Template(projectID, id int64) (*catalog.Template, error) {
	return o.template(projectID, func(t *catalog.Template) bool { return t.ID == id })
}

// OwnTemplate is that of a Resolver.
func (o *Objects) OwnTemplate(projectID int64, code string) (*catalog.Template, error) {
	return o.template(projectID, func(t *catalog.Template) bool { return t.Code == code && t.ProjectID != 0 })
}

func (o *Objects) template(projectID int64, is func(*catalog.Template) bool) (*catalog.Template, error) {
	rows, err := o.templates(projectID)
	if err != nil && !catalog.IsNotFound(err) {
		return nil, err
	}
	if i := slices.IndexFunc(rows, is); i >= 0 {
		return rows[i], nil
	}
	return nil, catalog.NotFound("template")
}

// Defaults is that of a Resolver.
func (o *Objects) Defaults() *catalog.Defaults {
	for _, f := range o.files {
		if f.declared.Defaults != nil {
			return f.declared.Defaults
		}
	}
	if o.hidden[hiddenObject{kind: catalog.KindDefaults}] {
		return nil
	}
	return o.live.Defaults()
}

// Sealing is that of a Resolver.
func (o *Objects) Sealing() *catalog.Sealing {
	for _, f := range o.files {
		if f.declared.Sealing != nil {
			return f.declared.Sealing
		}
	}
	if o.hidden[hiddenObject{kind: catalog.KindSealing}] {
		return nil
	}
	return o.live.Sealing()
}

// KeysNaming is that of a Resolver.
func (o *Objects) KeysNaming(slug string) []string {
	names := slices.DeleteFunc(o.live.KeysNaming(slug), func(name string) bool {
		return o.hidden[hiddenObject{kind: catalog.KindKey, name: name}]
	})
	for _, f := range o.files {
		for i := range f.declared.Keys {
			if k := &f.declared.Keys[i]; slices.Contains(k.Projects, slug) {
				names = append(names, k.Name)
			}
		}
	}
	return names
}

// File returns what a file declares; NOT_FOUND if there is none.
func (o *Objects) File(path string) (*catalog.FileRow, error) {
	f := o.files[path]
	switch {
	case f == nil:
		return o.live.File(path)
	case f.content == nil:
		return nil, catalog.NotFound("file")
	}
	return &catalog.FileRow{Refs: f.declared.Refs()}, nil
}

// LastGood is that of a Resolver.
func (o *Objects) LastGood(path string) ([]byte, error) {
	f := o.files[path]
	switch {
	case f == nil:
		return o.live.LastGood(path)
	case f.content == nil:
		return nil, catalog.NotFound("file")
	}
	return f.content, nil
}

// KeyNames is that of a Resolver.
func (o *Objects) KeyNames() []string {
	names := slices.DeleteFunc(o.live.KeyNames(), func(name string) bool {
		return o.hidden[hiddenObject{kind: catalog.KindKey, name: name}]
	})
	for _, f := range o.files {
		for i := range f.declared.Keys {
			names = append(names, f.declared.Keys[i].Name)
		}
	}
	return names
}
