package configsrc

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/judge"
	"fingerpost/resolver/catalog"
)

// rewriteKeyLists rewrites the key lists that name the slug: those in the project's own file in the draft, the others in
// their files, which must be locked by now.
func (p *projectTarget) rewriteKeyLists(w *attempt) error {
	p.moves.files = w.keyFiles(p.moves.from, w.path)
	for _, path := range p.moves.files {
		if !slices.Contains(w.also, path) {
			w.also = p.moves.files
			return errMoreFiles
		}
	}
	if _, err := p.draft.ReplaceInKeys(p.moves.from, p.moves.to); err != nil {
		return fmt.Errorf("edit %s: %w", w.path, err)
	}
	for _, path := range p.moves.files {
		swap, err := w.keySwap(path, p.moves)
		if err != nil {
			var refusal *catalog.Error
			if errors.As(err, &refusal) {
				why := *refusal
				why.Message = fmt.Sprintf("the key lists that name %q are part of this write: %s", p.moves.from, refusal.Message)
				err = &why
			}
			return err
		}
		if swap != nil {
			w.update.files = append(w.update.files, swap)
		}
	}
	return nil
}

// keySwap makes the new content of one file with keys; nil if no key on disk names the slug any more.
func (w *attempt) keySwap(path string, m *slugMove) (*fileSwap, error) {
	f, was, decoded, err := w.openFile(path)
	if err != nil {
		return nil, err
	}
	draft := hcledit.NewDraft(decoded)
	if found, err := draft.ReplaceInKeys(m.from, m.to); err != nil {
		return nil, fmt.Errorf("edit %s: %w", path, err)
	} else if !found {
		return nil, nil
	}
	if f.Content, err = draft.Bytes(); err != nil {
		return nil, fmt.Errorf("edit %s: %w", path, err)
	}
	f.c = &judge.Candidate{Path: path, Content: judge.Content{Bytes: f.Content}, Stamp: f.stamp}
	if f.c.Decode(w.display(path), w.tree, w.today()); f.c.Declared == nil {
		return nil, w.wouldBreak(f.c.Diags, w.edit.Covers)
	}
	want := *was.Declared
	want.Keys = m.keysAfter(want.Keys)
	if !reflect.DeepEqual(&want, f.c.Declared) {
		return nil, fmt.Errorf("edit %s: %w", path, hcledit.ErrVerify)
	}
	return f, nil
}

// keysAfter returns the keys after the move.
func (m *slugMove) keysAfter(keys []catalog.Key) []catalog.Key {
	keys = slices.Clone(keys)
	for i := range keys {
		k := &keys[i]
		if !slices.Contains(k.Projects, m.from) {
			continue
		}
		list := make([]string, 0, len(k.Projects))
		for _, slug := range k.Projects {
			switch {
			case slug != m.from:
				list = append(list, slug)
			case m.to != "":
				list = append(list, m.to)
			}
		}
		k.Projects = list
	}
	return keys
}
