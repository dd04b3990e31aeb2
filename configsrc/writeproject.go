package configsrc

import (
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"

	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/judge"
	"fingerpost/configsrc/names"
	"fingerpost/resolver/catalog"
)

// newProject declares a project in a file of its own, named after the slug.
type newProject struct{ project *catalog.ProjectConfig }

// find implements target. A project of another file may have the name: read chooses a free one.
func (n *newProject) find(*write) (path string, err error) {
	return n.project.Project.Slug + ".hcl", nil
}

// read implements target: a name that another file has is no reason to refuse the slug.
func (n *newProject) read(w *write) (err error) {
	w.was, w.decoded = new(judge.Content), nil
	slug := n.project.Project.Slug
	for number := 1; number <= 100; number++ {
		w.path = slug + ".hcl"
		if number > 1 {
			w.path = fmt.Sprintf("%s-%d.hcl", slug, number)
		}
		if w.o.Fanout {
			w.folder = slug[:min(2, len(slug))]
			if err := w.ws.makeFolder(w.folder); err != nil {
				return err
			}
			w.path = w.folder + "/" + w.path
		}
		if w.file, err = w.ws.create(w.path); !errors.Is(err, fs.ErrExist) {
			return err
		}
		if broken := w.brokenFile(w.path); broken != nil {
			return broken
		}
	}
	return err
}

// brokenFile returns why no file of this name can be created: a quarantined file has it.
func (w *write) brokenFile(path string) error {
	w.known.RLock()
	defer w.known.RUnlock()
	if bad := w.quarantine[path]; bad != nil {
		return w.invalidFile(bad.Diags, w.edit.Covers)
	}
	return nil
}

// change makes the file. The domains of a key that is limited to projects begin as in a project that exists.
func (n *newProject) change(w *write) ([]byte, error) {
	p := *n.project
	if p.Domains = slices.Clone(p.Domains); w.edit.Covers != nil {
		had, err := settleProofs(w, p.Project.UUID, nil, p.Domains)
		if err != nil {
			return nil, err
		}
		noteProofs(w, p.Project.UUID, had, nil, p.Domains)
	}
	n.project = &p
	return hcledit.NewProject(&p)
}

func (n *newProject) prove(w *write, result *judge.Candidate) error {
	if result.Declared == nil {
		return fmt.Errorf("write %s: the new content is invalid: %s", w.path, result.Diags[0].Summary)
	}
	is := result.Declared.Projects
	if len(is) != 1 || !slices.EqualFunc(is[0].Domains, n.project.Domains, func(a, b catalog.Domain) bool {
		return a.UUID == b.UUID && a.Name == b.Name && catalog.SameFields(a.Fields(), b.Fields())
	}) {
		return fmt.Errorf("write %s: %w", w.path, hcledit.ErrVerify)
	}
	return nil
}

// A projectTarget is the block of a project.
type projectTarget struct {
	edit     *catalog.ProjectEdit
	defaults *catalog.Defaults // in force
	draft    *hcledit.Draft    // of the new content
	at       int               // index of the project in the file
	project  *catalog.ProjectConfig
	want     *catalog.ProjectConfig // the project after the edit; nil if it is removed
	moves    *slugMove              // nil: the slug stays
	created  map[string]*fileSwap   // new files of long bodies, see newBody; nil: none
}

func (p *projectTarget) find(w *write) (path string, err error) {
	path, ok := w.fileOf(judge.ProjectClaim(p.edit.UUID))
	if !ok {
		return "", catalog.NotFound("project")
	}
	return path, nil
}

func (p *projectTarget) read(w *write) (err error) {
	if w.file, w.was, w.decoded, err = w.openFile(w.path); err != nil {
		return err
	}
	projects := w.was.Declared.Projects
	p.at = slices.IndexFunc(projects, func(c catalog.ProjectConfig) bool { return c.Project.UUID == p.edit.UUID })
	if p.at < 0 {
		return projectMoved(w.path)
	}
	p.project, p.defaults, p.draft = &projects[p.at], w.facts.Defaults(), hcledit.NewDraft(w.decoded)
	return nil
}

// change implements target: it notes the edits of the block, of key lists that name its slug, and of mail bodies in
// files of their own.
func (p *projectTarget) change(w *write) ([]byte, error) {
	note := p.rewrite
	if p.edit.Remove {
		note = p.remove
	}
	if err := note(w); errors.Is(err, hcledit.ErrLimit) {
		return nil, &catalog.Error{Code: catalog.CodeFileInvalid, Message: w.path + ": " + tooMuch}
	} else if err != nil {
		return nil, err
	}
	w.update.project, w.update.moves = p.project.Project.ID, p.moves
	if err := p.bodies(w); err != nil {
		return nil, err
	}
	if p.moves != nil {
		if err := p.keyLists(w); err != nil {
			return nil, err
		}
	}
	content, err := p.draft.Bytes()
	if err != nil {
		return nil, fmt.Errorf("edit %s: %w", w.path, err)
	}
	return content, nil
}

// rewrite notes the edits that make the block declare what the edit wants.
func (p *projectTarget) rewrite(w *write) error {
	have := inForce(p.project, p.defaults)
	want := have
	want.Domains, want.Templates = slices.Clone(have.Domains), slices.Clone(have.Templates)
	if have.SMTP != nil {
		smtp := *have.SMTP
		want.SMTP = &smtp
	}
	if err := p.edit.Change(&want); err != nil {
		return err
	}
	if w.edit.Covers != nil {
		had, err := settleProofs(w, p.edit.UUID, have.Domains, want.Domains)
		if err != nil {
			return err
		}
		if err := p.takeOver(w, &want); err != nil {
			return err
		}
		noteProofs(w, p.edit.UUID, had, have.Domains, want.Domains)
	}
	if from, to := have.Project.Slug, want.Project.Slug; from != to {
		p.moves = &slugMove{from: from, to: to}
	}
	if err := p.protect(w, &have, &want); err != nil {
		return err
	}
	p.want = &want
	p.draft.BodyFile = func(code, attr, text string) (string, error) { return p.newBody(w, code, attr, text) }
	return p.draft.RewriteProject(&have, &want)
}

// settleProofs sets what the edit of a key that is limited to projects makes of the proofs of a project's domains. had are
// the notes of the names that come or go. The defaults are those that are live, also for a proposal.
func settleProofs(w *write, project catalog.UUID, have, want []catalog.Domain) (had map[string]string, err error) {
	had = map[string]string{}
	for _, name := range names.Moving(have, want) {
		if had[name], err = names.Noted(w.facts, project, name); err != nil {
			return nil, err
		}
	}
	names.SettleProofs(have, want, had, w.o.Sink.Defaults())
	return had, nil
}

// noteProofs notes what the files do not say of the proofs of settled domains.
func noteProofs(w *write, project catalog.UUID, had map[string]string, have, want []catalog.Domain) {
	w.update.notes = domainNotes{project, had, names.NotesOf(have, want, had, w.o.Sink.Defaults())}
}

// remove notes that the block goes.
func (p *projectTarget) remove(w *write) error {
	have := inForce(p.project, p.defaults)
	if p.edit.Change != nil {
		if err := p.edit.Change(&have); err != nil {
			return err
		}
	}
	p.moves = &slugMove{from: p.project.Project.Slug}
	w.update.removes = p.project.Project.UUID
	return p.draft.RemoveProject(p.project.Project.Slug)
}

// prove implements target.
func (p *projectTarget) prove(w *write, result *judge.Candidate) error {
	if result.Declared == nil {
		if err := p.clash(w); err != nil {
			return err
		}
		return w.wouldBreak(result.Diags, w.edit.Covers)
	}
	want, is := *w.was.Declared, *result.Declared
	if p.moves != nil {
		want.Keys = p.moves.keys(want.Keys)
	}
	wrong := fmt.Errorf("edit %s: %w", w.path, hcledit.ErrVerify)
	if l := w.update.loser; l != nil {
		want.Projects = l.in(want.Projects, is.Projects)
		result.Others = map[int64]*catalog.Author{l.left.Project.ID: l.by}
	}
	want.Projects = slices.Delete(slices.Clone(want.Projects), p.at, p.at+1)
	if p.want != nil {
		if p.at >= len(is.Projects) || !sayEqual(inForce(&is.Projects[p.at], p.defaults), p.want) {
			return wrong
		}
		is.Projects = slices.Delete(slices.Clone(is.Projects), p.at, p.at+1)
	}
	if len(want.Projects) == 0 && len(is.Projects) == 0 {
		want.Projects, is.Projects = nil, nil
	}
	if !reflect.DeepEqual(want, is) {
		return wrong
	}
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
		if have, ok := templates[t.Code]; !ok || have != t {
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
