package store

import (
	"slices"

	"fingerpost/resolver/catalog"
)

// gather collects what the files declared so far and do not declare unchanged. Unchanged declarations, nearly all in a
// large change, cost no memory here.
func (w *writer) gather(c *catalog.Change) error {
	w.before = make(map[objectID]*formerRef)
	for i := range c.Files {
		if err := w.gatherFile(&c.Files[i]); err != nil {
			return err
		}
	}
	if len(w.before) == 0 {
		return nil
	}
	eachRef(c, func(r catalog.Ref) {
		if former := w.before[identify(&r)]; former != nil {
			former.kept = true
		}
	})
	return nil
}

// eachRef calls f with all objects that the files of a change declare.
func eachRef(c *catalog.Change, f func(catalog.Ref)) {
	for i := range c.Files {
		if d := c.Files[i].Declared; d != nil {
			d.EachRef(f)
		}
	}
}

func (w *writer) gatherFile(f *catalog.FileChange) error {
	if f.Row != nil && f.Declared == nil {
		return nil
	}
	old, err := w.refs(f.Path)
	if err != nil || len(old) == 0 {
		return err
	}
	same := make(map[catalog.Ref]struct{})
	if f.Declared != nil {
		present := f.Declared.Refs()
		if slices.Equal(old, present) {
			return nil
		}
		for _, ref := range present {
			same[ref] = struct{}{}
		}
	}
	for _, ref := range old {
		if _, ok := same[ref]; !ok {
			w.before[identify(&ref)] = &formerRef{Ref: ref}
		}
	}
	return nil
}

// refs returns what the stored row of a file says that it declares.
func (w *writer) refs(path string) ([]catalog.Ref, error) {
	rec, err := w.load(appendTextKey(nil, prefixFile, path))
	if err != nil || rec == nil {
		return nil, err
	}
	row, err := decodeRow(rec)
	if err != nil {
		return nil, err
	}
	return row.Refs, nil
}
