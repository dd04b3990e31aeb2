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

// rewriteLists rewrites the lists of projects that name the slug: those in the project's own file in the
// draft, the others in their files, which must be locked by now.
func (p *projectTarget) rewriteLists(w *attempt) error {
	p.moves.files = w.listFiles(p.moves.from, w.path)
	for _, path := range p.moves.files {
		if !slices.Contains(w.also, path) {
			w.also = p.moves.files
			return errMoreFiles
		}
	}
	if _, err := p.draft.ReplaceInLists(p.moves.from, p.moves.to); err != nil {
		return fmt.Errorf("edit %s: %w", w.path, err)
	}
	for _, path := range p.moves.files {
		swap, err := w.listSwap(path, p.moves)
		if err != nil {
			var refusal *catalog.Error
			if errors.As(err, &refusal) {
				why := *refusal
				why.Message = fmt.Sprintf("the lists that name %q are part of this write: %s", p.moves.from, refusal.Message)
				err = &why
			}
			return err
		}
		if swap != nil {
			w.update.Files = append(w.update.Files, swap)
		}
	}
	return nil
}

// listSwap makes the new content of one file with such lists; nil if no list on disk names the slug any more.
func (w *attempt) listSwap(path string, m *slugMove) (*Swap, error) {
	f, was, decoded, err := w.openFile(path)
	if err != nil {
		return nil, err
	}
	draft := hcledit.NewDraft(decoded)
	if found, err := draft.ReplaceInLists(m.from, m.to); err != nil {
		return nil, fmt.Errorf("edit %s: %w", path, err)
	} else if !found {
		return nil, nil
	}
	if f.Content, err = draft.Bytes(); err != nil {
		return nil, fmt.Errorf("edit %s: %w", path, err)
	}
	f.Config = &judge.Candidate{Path: path, Content: judge.Content{Bytes: f.Content}, Stamp: f.Stamp}
	if f.Config.Decode(w.Display(path), w.tree, w.Rules()); f.Config.Declared == nil {
		return nil, w.wouldBreak(f.Config.Diags, w.edit.Covers)
	}
	want := *was.Declared
	m.replaceIn(&want)
	if !reflect.DeepEqual(&want, f.Config.Declared) {
		return nil, fmt.Errorf("edit %s: %w", path, hcledit.ErrVerify)
	}
	return f, nil
}

// replaceIn makes the move in the lists of d, whose objects with lists are replaced by copies.
func (m *slugMove) replaceIn(d *catalog.Declared) {
	d.Keys, d.Webhooks, d.Logins = slices.Clone(d.Keys), slices.Clone(d.Webhooks), slices.Clone(d.Logins)
	d.Inbounds = slices.Clone(d.Inbounds)
	for i := range d.Keys {
		d.Keys[i].Projects = m.listAfter(d.Keys[i].Projects)
	}
	for i := range d.Webhooks {
		d.Webhooks[i].Projects = m.listAfter(d.Webhooks[i].Projects)
	}
	for i := range d.Logins {
		d.Logins[i] = d.Logins[i].Clone()
		for j := range d.Logins[i].Rules {
			r := &d.Logins[i].Rules[j]
			r.Projects = m.listAfter(r.Projects)
		}
	}
	for i := range d.Inbounds {
		d.Inbounds[i].Projects = m.listAfter(d.Inbounds[i].Projects)
	}
}

// listAfter returns a list of slugs after the move.
func (m *slugMove) listAfter(slugs []string) []string {
	if !slices.Contains(slugs, m.from) {
		return slugs
	}
	list := make([]string, 0, len(slugs))
	for _, slug := range slugs {
		switch {
		case slug != m.from:
			list = append(list, slug)
		case m.to != "":
			list = append(list, m.to)
		}
	}
	return list
}
