package edits

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/judge"
	"fingerpost/resolver/catalog"
)

// change implements target: it notes the edits of the block, of lists that name its slug, and of mail bodies in
// files of their own.
func (p *projectTarget) change(w *attempt) ([]byte, error) {
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
	if err := p.addBodies(w); err != nil {
		return nil, err
	}
	if p.moves != nil {
		if err := p.rewriteLists(w); err != nil {
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
func (p *projectTarget) rewrite(w *attempt) error {
	have := inForce(p.project, p.defaults)
	want := have
	want.Domains, want.Templates = slices.Clone(have.Domains), catalog.CloneTemplates(have.Templates)
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
		if err := p.takeDomain(w, &want); err != nil {
			return err
		}
		noteProofs(w, p.edit.UUID, had, have.Domains, want.Domains)
	}
	if from, to := have.Project.Slug, want.Project.Slug; from != to {
		p.moves = &slugMove{from: from, to: to}
	}
	if err := p.protectSecrets(w, &have, &want); err != nil {
		return err
	}
	p.want = &want
	p.draft.BodyFile = func(at hcledit.TextPlace, text string) (string, error) {
		return p.newBody(w, at, text)
	}
	return p.draft.RewriteProject(&have, &want)
}

// remove notes that the block goes.
func (p *projectTarget) remove(w *attempt) error {
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
func (p *projectTarget) prove(w *attempt, result *judge.Candidate) error {
	if result.Declared == nil {
		if err := p.clash(w); err != nil {
			return err
		}
		return w.wouldBreak(result.Diags, w.edit.Covers)
	}
	want, is := *w.was.Declared, *result.Declared
	if p.moves != nil {
		p.moves.replaceIn(&want)
	}
	wrong := fmt.Errorf("edit %s: %w", w.path, hcledit.ErrVerify)
	if l := w.update.loser; l != nil {
		want.Projects = l.projectsAfter(want.Projects, is.Projects)
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

// clash returns the CONFLICT of a change with another project of the same file, nil if there is none.
func (p *projectTarget) clash(w *attempt) error {
	if p.want == nil {
		return nil
	}
	others := slices.Concat(w.was.Declared.Projects[:p.at], w.was.Declared.Projects[p.at+1:])
	place := func(ref catalog.Ref) string { return fmt.Sprintf("%s:%d", w.path, w.decoded.Position(ref).Line) }
	if conflict := judge.Clash(p.want, others, w.edit.Covers, place); conflict != nil {
		return conflict
	}
	return nil
}
