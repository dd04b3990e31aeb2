package store

import (
	"bytes"

	"fingerpost/resolver/catalog"
)

// declare writes the objects of a file.
func (w *writer) declare(d *catalog.Declared) error {
	for i := range d.Projects {
		if err := w.declareProject(&d.Projects[i]); err != nil {
			return err
		}
	}
	if err := w.templates(d.Templates, 0); err != nil {
		return err
	}
	for i := range d.Keys {
		k := &d.Keys[i]
		if err := w.plain(appendTextKey(nil, prefixKey, k.Name), encodeKey(k), &w.effect.Keys); err != nil {
			return err
		}
	}
	if d.Defaults != nil {
		if err := w.plain(keyDefaults, encode(d.Defaults), &w.effect.Defaults); err != nil {
			return err
		}
	}
	if d.Sealing != nil {
		return w.plain(keySealing, encode(d.Sealing), &w.effect.Sealing)
	}
	return nil
}

func (w *writer) declareProject(p *catalog.ProjectConfig) error {
	rec, effect, err := w.project(p)
	if err != nil {
		return err
	}
	if len(p.Domains) > maxCopies {
		rec = nil
	}
	if effect != nil {
		effect.Domains = make([]string, 0, len(p.Domains))
	}
	for i := range p.Domains {
		d := p.Domains[i]
		d.ProjectID = p.Project.ID // the enclosing block decides
		if err := w.domain(&d, rec); err != nil {
			return err
		}
		if effect != nil {
			effect.Domains = append(effect.Domains, d.Name)
		}
	}
	return w.templates(p.Templates, p.Project.ID)
}

func (w *writer) templates(list []catalog.Template, project int64) error {
	for i := range list {
		t := list[i]
		t.ProjectID = project
		if err := w.template(&t); err != nil {
			return err
		}
	}
	return nil
}

// plain writes a record without times where it differs, and then sets changed.
func (w *writer) plain(key, rec []byte, changed *bool) error {
	old, err := w.load(key)
	if err == nil && !bytes.Equal(old, rec) {
		w.set(key, rec)
		*changed = true
	}
	return err
}
