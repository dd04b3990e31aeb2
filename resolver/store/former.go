package store

import (
	"bytes"
	"errors"

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
	return w.eachRefs(c, w.keepFormer)
}

// eachRefs calls f with the refs of each file that declares something.
func (w *writer) eachRefs(c *catalog.Change, f func(refs []byte) error) error {
	for i := range c.Files {
		if d := c.Files[i].Declared; d != nil {
			if err := f(w.refs(d)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *writer) gatherFile(f *catalog.FileChange) error {
	if f.Row != nil && f.Declared == nil {
		return nil
	}
	w.key = appendTextKey(w.key[:0], prefixFile, f.Path)
	rec, err := w.load(w.key)
	if err != nil || rec == nil {
		return err
	}
	old, err := rowRefs(rec)
	if err != nil {
		return err
	}
	if f.Declared == nil {
		return w.lose(old, nil)
	}
	present := w.refs(f.Declared)
	if bytes.Equal(old, present) {
		return nil
	}
	return w.lose(old, present)
}

// lose records the refs in old that are not in present; both are encoded rows.
func (w *writer) lose(old, present []byte) error {
	had := decoder{s: string(old)} // a copy, which w.before may keep
	has := borrow(present)
	same := make(map[catalog.Ref]struct{})
	if len(present) > 0 {
		for _, ref := range has.refs(nil) {
			same[ref] = struct{}{}
		}
	}
	for _, ref := range had.refs(nil) {
		if _, ok := same[ref]; !ok {
			w.before[identify(&ref)] = &formerRef{Ref: ref}
		}
	}
	return errors.Join(had.err(), has.err())
}

// keepFormer marks the objects in refs as declared again.
func (w *writer) keepFormer(refs []byte) error {
	d := borrow(refs)
	w.former = d.refs(w.former[:0])
	for i := range w.former {
		if former := w.before[identify(&w.former[i])]; former != nil {
			former.kept = true
		}
	}
	clear(w.former) // the refs are borrowed
	return d.err()
}
