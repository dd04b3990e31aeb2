package edits

import (
	"reflect"
	"slices"

	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/judge"
	"fingerpost/resolver/catalog"
)

// A projectTarget is the block of a project.
type projectTarget struct {
	edit     *catalog.ProjectEdit
	defaults *catalog.Defaults // in force
	draft    *hcledit.Draft    // of the new content
	at       int               // index of the project in the file
	project  *catalog.ProjectConfig
	want     *catalog.ProjectConfig // the project after the edit; nil if it is removed
	moves    *slugMove              // nil: the slug stays
	created  map[string]*Swap       // new files of long bodies, see newBody; nil: none
}

func (p *projectTarget) find(w *attempt) (path string, err error) {
	path, ok := w.FileOf(judge.ProjectClaim(p.edit.UUID))
	if !ok {
		return "", catalog.NotFound("project")
	}
	return path, nil
}

func (p *projectTarget) read(w *attempt) (err error) {
	if w.file, w.was, w.decoded, err = w.openFile(w.path); err != nil {
		return err
	}
	projects := w.was.Declared.Projects
	p.at = slices.IndexFunc(projects, func(c catalog.ProjectConfig) bool { return c.Project.UUID == p.edit.UUID })
	if p.at < 0 {
		return projectMoved(w.path)
	}
	p.project, p.defaults, p.draft = &projects[p.at], w.Facts.Defaults(), hcledit.NewDraft(w.decoded)
	return nil
}

// sayEqual reports whether a decoded project equals want; the settings of both are those in force. The order of domains
// and templates does not count, and a new domain in want has no id yet.
func sayEqual(got catalog.ProjectConfig, want *catalog.ProjectConfig) bool {
	if !reflect.DeepEqual(got.Project, want.Project) || !got.Service.Same(&want.Service) || !got.Auth.Same(&want.Auth) ||
		!reflect.DeepEqual(got.SMTP, want.SMTP) || len(got.Domains) != len(want.Domains) ||
		len(got.Templates) != len(want.Templates) {
		return false
	}
	domains := make(map[catalog.UUID]catalog.Domain, len(got.Domains))
	for _, d := range got.Domains {
		domains[d.UUID] = d
	}
	for _, d := range want.Domains {
		have, ok := domains[d.UUID]
		if !ok || have.Name != d.Name || !catalog.SameFields(have.Fields(), d.Fields()) || d.ID != 0 && have.ID != d.ID {
			return false
		}
		delete(domains, d.UUID)
	}
	templates := make(map[string]catalog.Template, len(got.Templates))
	for _, t := range got.Templates {
		templates[t.Code] = t
	}
	for _, t := range want.Templates {
		if have, ok := templates[t.Code]; !ok || !reflect.DeepEqual(have, t) {
			return false
		}
		delete(templates, t.Code)
	}
	return true
}

// inForce returns a project with its settings as they are served.
func inForce(p *catalog.ProjectConfig, defaults *catalog.Defaults) catalog.ProjectConfig {
	out := *p
	out.Service, out.Auth = defaults.InForce(p)
	return out
}

// projectMoved refuses the edit of a project that a person has taken out of its file.
func projectMoved(path string) error {
	return &catalog.Error{Code: catalog.CodeFileChanged, Message: "the project is no longer in " + path +
		", where it was; try again when the files have been reloaded"}
}
