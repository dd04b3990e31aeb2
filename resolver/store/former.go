package store

import (
	"cmp"
	"slices"

	"fingerpost/resolver/catalog"
)

// gather collects what the files declared so far and do not declare unchanged, and notes whether they declared
// anything. Unchanged declarations, nearly all in a
// large change, cost no memory here.
func (w *writer) gather(c *catalog.Change) error {
	w.before = make(map[objectID]*formerRef)
	for i := range c.Files {
		f := &c.Files[i]
		if f.Row != nil && f.Declared == nil {
			continue
		}
		old, err := w.refs(f.Path)
		if err != nil {
			return err
		}
		if len(old) == 0 {
			continue
		}
		w.fresh = false
		var present []catalog.Ref
		if f.Declared != nil {
			present = f.Declared.Refs()
		}
		if slices.Equal(old, present) {
			continue
		}
		same := make(map[catalog.Ref]struct{})
		for _, ref := range present {
			same[ref] = struct{}{}
		}
		for _, ref := range old {
			if _, ok := same[ref]; !ok {
				w.before[identify(&ref)] = &formerRef{Ref: ref, by: cmp.Or(f.Others[ref.ProjectID], f.By)}
			}
		}
	}
	if len(w.before) > 0 {
		eachRef(c, func(r catalog.Ref) {
			if former := w.before[identify(&r)]; former != nil {
				former.kept = true
			}
		})
	}
	return nil
}

// gone lists what no file of the change declares any more, in an order that depends on the objects alone.
func (w *writer) gone() (gone []*formerRef) {
	for _, former := range w.before {
		if !former.kept {
			gone = append(gone, former)
		}
	}
	slices.SortFunc(gone, func(a, b *formerRef) int {
		return cmp.Or(cmp.Compare(a.ProjectID, b.ProjectID), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return gone
}

// eachRef calls f with all objects that the files of a change declare.
func eachRef(c *catalog.Change, f func(catalog.Ref)) {
	for i := range c.Files {
		if d := c.Files[i].Declared; d != nil {
			d.EachRef(f)
		}
	}
}

// refs returns what the stored row of a file says that it declares.
func (w *writer) refs(path string) ([]catalog.Ref, error) {
	rec, err := w.s.load(textKey(prefixFile, path))
	if err != nil || rec == nil {
		return nil, err
	}
	var row fileRecord
	err = decode(rec, &row)
	return row.Refs, err
}
