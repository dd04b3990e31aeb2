package edits

import (
	"fmt"
	"reflect"
	"slices"

	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/judge"
	"fingerpost/configsrc/names"
	"fingerpost/resolver/catalog"
)

// takeDomain makes the part of a write that takes a domain from the project that has never proven it: that project
// changes in the same write, with an author of its own, who is not a person.
func (p *projectTarget) takeDomain(w *attempt, want *catalog.ProjectConfig) error {
	t := w.edit.Takes
	if t == nil {
		return nil
	}
	path, there := w.FileOf(judge.ProjectClaim(t.From))
	var err error
	switch {
	case !there:
		err = errTaken()
	case path == w.path:
		err = p.takeDomainHere(w)
	default:
		err = w.takeDomainFrom(path)
	}
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(want.Domains, t.Is); i >= 0 {
		want.Domains[i].Verified = &t.Verified
	}
	return nil
}

func errTaken() error {
	e := &catalog.Error{Code: catalog.CodeConflict, Message: "this domain is declared already"}
	e.Problems.Addf("domain", "belongs to a project already")
	return e
}

// takeDomainHere takes the domain from a project of the file that is edited.
func (p *projectTarget) takeDomainHere(w *attempt) error {
	l, err := w.releaseDomain(p.draft, w.was.Declared.Projects)
	if err != nil {
		return err
	}
	w.update.loser = l
	return nil
}

// takeDomainFrom takes the domain from a project of another file.
func (w *attempt) takeDomainFrom(path string) error {
	if !slices.Contains(w.also, path) {
		w.also = append(w.also, path)
		return errMoreFiles
	}
	f, was, decoded, err := w.openFile(path)
	if err != nil {
		return err
	}
	draft := hcledit.NewDraft(decoded)
	l, err := w.releaseDomain(draft, was.Declared.Projects)
	if err != nil {
		return err
	}
	if f.Content, err = draft.Bytes(); err != nil {
		return fmt.Errorf("edit %s: %w", path, err)
	}
	f.Config = &judge.Candidate{Path: path, Content: judge.Content{Bytes: f.Content}, Stamp: f.Stamp, By: l.by}
	if f.Config.Decode(w.Display(path), w.tree, w.Rules()); f.Config.Declared == nil {
		return w.wouldBreak(f.Config.Diags, w.edit.Covers)
	}
	left := *was.Declared
	left.Projects = l.projectsAfter(left.Projects, f.Config.Declared.Projects)
	if !reflect.DeepEqual(&left, f.Config.Declared) {
		return fmt.Errorf("edit %s: %w", path, hcledit.ErrVerify)
	}
	w.update.Files = append(w.update.Files, f)
	return nil
}

// releaseDomain notes the edits that take the domain from its project, if the project has never proven it.
func (w *attempt) releaseDomain(draft *hcledit.Draft, projects []catalog.ProjectConfig) (*loser, error) {
	t := w.edit.Takes
	at := slices.IndexFunc(projects, func(p catalog.ProjectConfig) bool { return p.Project.UUID == t.From })
	if at < 0 {
		return nil, errTaken()
	}
	had := projects[at]
	i := slices.IndexFunc(had.Domains, t.Is)
	if i < 0 {
		return nil, errTaken()
	}
	record := had.Domains[i]
	record.ProjectID = had.Project.ID
	if free, err := names.Unproven(w.Facts, &record); err != nil {
		return nil, err
	} else if !free {
		return nil, errTaken()
	}
	l := &loser{at: at, left: had,
		by: &catalog.Author{Door: catalog.DoorDNS, Reason: t.Reason, RequestID: catalog.NewUUID().String()}}
	l.left.Domains = slices.DeleteFunc(slices.Clone(had.Domains), t.Is)
	before, after := inForce(&had, w.Facts.Defaults()), inForce(&l.left, w.Facts.Defaults())
	if err := draft.RewriteProject(&before, &after); err != nil {
		return nil, fmt.Errorf("edit %s: %w", w.path, err)
	}
	return l, nil
}

// projectsAfter returns the projects of a file with what is left of the loser. is are those that the new content
// decodes to.
func (l *loser) projectsAfter(projects, is []catalog.ProjectConfig) []catalog.ProjectConfig {
	projects = slices.Clone(projects)
	projects[l.at] = l.left
	if len(l.left.Domains) == 0 && l.at < len(is) { // nil or empty
		projects[l.at].Domains = is[l.at].Domains[:0:0]
	}
	return projects
}
