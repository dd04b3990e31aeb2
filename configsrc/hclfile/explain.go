package hclfile

import "fingerpost/resolver/catalog"

// A PlacedResult is a decoded config file with its path as origins name it.
type PlacedResult struct {
	Path string
	*Result
}

// An explainer finds the origins of one project's values.
type explainer struct {
	project  *catalog.ProjectConfig // as the file declares it
	in       PlacedResult
	defaults PlacedResult // with the defaults block; empty: there is no such block
}

// Explain returns a project that a file declares as it is served, and says where each value comes from: which line of
// which file, the defaults block, or nowhere, so that the built-in default holds. Settings are inherited one by one and
// an SMTP config as a whole (configsrc/README.md, defaults). defaults is the file with the defaults block, empty if none
// has one; both files are of one moment.
func Explain(project *catalog.ProjectConfig, in, defaults PlacedResult) *catalog.Explained {
	e := explainer{project, in, defaults}
	var block *catalog.Defaults
	if defaults.Result != nil {
		block = defaults.Declared.Defaults
	}
	return e.explain(block)
}

func (e *explainer) explain(defaults *catalog.Defaults) *catalog.Explained {
	x := &catalog.Explained{Config: *e.project}
	x.Config.Service, x.Config.Auth = defaults.InForce(e.project)
	x.Config.SMTP = catalog.SMTPInForce(e.project.SMTP, defaults)
	p := &e.project.Project
	block := e.in.Lines(catalog.Ref{Kind: catalog.KindProject, Name: p.Slug})
	x.Project = e.written(block, p.Fields(), "slug", "id", "uuid")
	for i := range e.project.Domains {
		d := &e.project.Domains[i]
		block := e.in.Lines(catalog.Ref{Kind: catalog.KindDomain, Name: d.Name, ProjectID: p.ID})
		x.Domains = append(x.Domains, e.written(block, d.Fields(), "domain", "id"))
	}
	var service, auth catalog.FieldSet
	if defaults != nil && defaults.Service != nil {
		service = defaults.Service.Said
	}
	if defaults != nil && defaults.Auth != nil {
		auth = defaults.Auth.Said
	}
	x.Service = e.settings(catalog.KindServiceSettings, x.Config.Service.Fields(), e.project.Service.Said, service)
	x.Auth = e.settings(catalog.KindAuthSettings, x.Config.Auth.Fields(), e.project.Auth.Said, auth)
	if x.Config.SMTP != nil {
		x.SMTP = e.smtp(x.Config.SMTP)
	}
	return x
}

// written returns the origins of a block that inherits nothing. label is the field that the block's label holds, more
// are attributes that are not among the fields.
func (e *explainer) written(block Lines, fields []catalog.Field, label string, more ...string) catalog.Origins {
	o := catalog.Origins{label: {File: e.in.Path, Line: block.Block}}
	for _, f := range fields {
		more = append(more, f.Name)
	}
	for _, name := range more {
		o[name] = e.own(block, name)
	}
	return o
}

// own returns the origin of a field that a block of the project sets, the zero Origin if it does not.
func (e *explainer) own(block Lines, field string) catalog.Origin {
	if line := block.Attrs[catalog.Snake(field)]; line > 0 {
		return catalog.Origin{File: e.in.Path, Line: line}
	}
	return catalog.Origin{}
}

// inherited is own for a block of the defaults block.
func (e *explainer) inherited(block Lines, field string) catalog.Origin {
	if line := block.Attrs[catalog.Snake(field)]; line > 0 {
		return catalog.Origin{File: e.defaults.Path, Line: line, Defaults: true}
	}
	return catalog.Origin{}
}

// blocks returns the lines of the project's block of a kind, and of that in the defaults block.
func (e *explainer) blocks(kind catalog.Kind) (own, inherited Lines) {
	own = e.in.Lines(catalog.Ref{Kind: kind, ProjectID: e.project.Project.ID})
	if e.defaults.Result != nil {
		inherited = e.defaults.Lines(catalog.Ref{Kind: kind})
	}
	return own, inherited
}

// settings returns the origins of settings, which are inherited one by one. A field that is set without a line follows
// registration_mode (configsrc/README.md, auth_settings).
func (e *explainer) settings(kind catalog.Kind, fields []catalog.Field, own,
	inherited catalog.FieldSet) catalog.Origins {
	ownLines, inheritedLines := e.blocks(kind)
	o := make(catalog.Origins, len(fields))
	for i, f := range fields {
		find, block := e.own, ownLines
		switch {
		case own.Has(i):
		case inherited.Has(i):
			find, block = e.inherited, inheritedLines
		default:
			o[f.Name] = catalog.Origin{}
			continue
		}
		if o[f.Name] = find(block, f.Name); o[f.Name] == (catalog.Origin{}) {
			o[f.Name] = find(block, "registrationMode")
		}
	}
	return o
}

// smtp returns the origins of the SMTP config in force. Of a project without a server of its own, only the sender comes
// from the project's block.
func (e *explainer) smtp(c *catalog.SMTPConfig) catalog.Origins {
	ownLines, inheritedLines := e.blocks(catalog.KindSMTPConfig)
	o := make(catalog.Origins)
	for i, f := range c.Fields() {
		if !c.Inherited() {
			o[f.Name] = e.own(ownLines, f.Name)
			continue
		}
		o[f.Name] = e.inherited(inheritedLines, f.Name)
		if e.project.SMTP != nil && decides(e.project.SMTP.Fields()[i]) {
			o[f.Name] = e.own(ownLines, f.Name)
		}
	}
	return o
}

// decides reports whether a field of a block without a host replaces the relay's: a text or a list does if it is not empty,
// active if it is false (see catalog.SMTPInForce).
func decides(f catalog.Field) bool {
	switch v := f.Value.(type) {
	case *string:
		return *v != ""
	case *[]string:
		return *v != nil
	case *bool:
		return f.Name == "active" && !*v
	}
	return false
}
