package configsrc

import (
	"slices"
	"strings"

	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// Explain returns a project as it is served, with the origin of each value. Both come from the last good bytes of the
// project's file and of the file with the defaults block, so they always agree. Paths are relative to the config
// folder. A project that no file declares is a NOT_FOUND *catalog.Error. It may be called from any goroutine.
func (s *base) Explain(project catalog.UUID) (*catalog.Explained, error) {
	path, file, declared, err := s.declared(project)
	if err != nil {
		return nil, err
	}
	e := explainer{path: path, lines: file, project: declared}
	if path, found := s.fileOf(claimOf(string(catalog.KindDefaults), "")); found {
		if e.defaultsLines, err = s.lastDecoded(path); err != nil {
			return nil, err
		}
		e.defaultsPath, e.defaults = path, e.defaultsLines.Declared.Defaults
	}
	return e.explain(), nil
}

// declared returns a project as the last good bytes of its file declare it, with the file.
func (s *base) declared(project catalog.UUID) (path string, file *hclfile.Result, p *catalog.ProjectConfig,
	err error) {
	path, found := s.fileOf(projectClaim(project))
	if !found {
		return "", nil, nil, &catalog.Error{Code: catalog.CodeNotFound, Message: "no such project"}
	}
	if file, err = s.lastDecoded(path); err != nil {
		return "", nil, nil, err
	}
	i := slices.IndexFunc(file.Declared.Projects, func(p catalog.ProjectConfig) bool { return p.Project.UUID == project })
	if i < 0 {
		return "", nil, nil, busy("the files have just changed")
	}
	return path, file, &file.Declared.Projects[i], nil
}

// A Block is a block of a config file as it stands there, without its secrets.
type Block struct {
	File string `json:"file"` // below the config folder
	Line int    `json:"line"` // of its first line
	Text string `json:"text"` // whole lines
}

// Block returns a project's block out of the last good bytes of its file. Its secrets are shown as hclfile.Masked
// shows them.
func (s *base) Block(project catalog.UUID) (*Block, error) {
	path, file, declared, err := s.declared(project)
	if err != nil {
		return nil, err
	}
	at := file.Lines(catalog.Ref{Kind: catalog.KindProject, Name: declared.Project.Slug})
	var text strings.Builder
	line := 0
	for l := range strings.Lines(string(hclfile.Masked(file.Source.Src))) {
		if line++; line >= at.Block && line <= at.End {
			text.WriteString(l)
		}
	}
	return &Block{File: path, Line: at.Block, Text: text.String()}, nil
}

// lastDecoded decodes the last good bytes of a file.
func (s *base) lastDecoded(path string) (*hclfile.Result, error) {
	b, err := s.facts.LastGood(path)
	if err != nil {
		return nil, err
	}
	return positions(path, b), nil
}

// Explain is Source.Explain for the files alone. Paths are those of messages. It returns nil for an unknown slug.
func (c *Checked) Explain(slug string) *catalog.Explained {
	file, p := c.Project(slug)
	if p == nil {
		return nil
	}
	e := explainer{path: file.Display, lines: file.positions(), project: p}
	for i := range c.Files {
		if f := &c.Files[i]; f.Declared.Defaults != nil {
			e.defaultsPath, e.defaultsLines, e.defaults = f.Display, f.positions(), f.Declared.Defaults
		}
	}
	return e.explain()
}

// An explainer finds the origins of one project's values.
type explainer struct {
	path    string
	lines   *hclfile.Result
	project *catalog.ProjectConfig // as the file declares it

	defaultsPath  string
	defaultsLines *hclfile.Result
	defaults      *catalog.Defaults // nil: there is no such block
}

func (e *explainer) explain() *catalog.Explained {
	x := &catalog.Explained{Config: inForce(e.project, e.defaults)}
	x.Config.SMTP = catalog.SMTPInForce(e.project.SMTP, e.defaults)
	p := &e.project.Project
	block := e.lines.Lines(catalog.Ref{Kind: catalog.KindProject, Name: p.Slug})
	x.Project = e.written(block, p.Fields(), "slug", "id", "uuid")
	for i := range e.project.Domains {
		d := &e.project.Domains[i]
		block := e.lines.Lines(catalog.Ref{Kind: catalog.KindDomain, Name: d.Name, ProjectID: p.ID})
		x.Domains = append(x.Domains, e.written(block, d.Fields(), "domain", "id"))
	}
	var service, auth catalog.FieldSet
	if e.defaults != nil && e.defaults.Service != nil {
		service = e.defaults.Service.Said
	}
	if e.defaults != nil && e.defaults.Auth != nil {
		auth = e.defaults.Auth.Said
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
func (e *explainer) written(block hclfile.Lines, fields []catalog.Field, label string, more ...string) catalog.Origins {
	o := catalog.Origins{label: {File: e.path, Line: block.Block}}
	for _, f := range fields {
		more = append(more, f.Name)
	}
	for _, name := range more {
		o[name] = e.own(block, name)
	}
	return o
}

// own returns the origin of a field that a block of the project sets, the zero Origin if it does not.
func (e *explainer) own(block hclfile.Lines, field string) catalog.Origin {
	if line := block.Attrs[catalog.Snake(field)]; line > 0 {
		return catalog.Origin{File: e.path, Line: line}
	}
	return catalog.Origin{}
}

// inherited is own for a block of the defaults block.
func (e *explainer) inherited(block hclfile.Lines, field string) catalog.Origin {
	if line := block.Attrs[catalog.Snake(field)]; line > 0 {
		return catalog.Origin{File: e.defaultsPath, Line: line, Defaults: true}
	}
	return catalog.Origin{}
}

// blocks returns the lines of the project's block of a kind, and of that in the defaults block.
func (e *explainer) blocks(kind catalog.Kind) (own, inherited hclfile.Lines) {
	own = e.lines.Lines(catalog.Ref{Kind: kind, ProjectID: e.project.Project.ID})
	if e.defaultsLines != nil {
		inherited = e.defaultsLines.Lines(catalog.Ref{Kind: kind})
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

// decides reports whether a field of a block without a host replaces the relay's: a text does if it is not empty,
// active if it is false (see catalog.SMTPInForce).
func decides(f catalog.Field) bool {
	switch v := f.Value.(type) {
	case *string:
		return *v != ""
	case *bool:
		return f.Name == "active" && !*v
	}
	return false
}
