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
		err := w.plain(textKey(prefixKey, k.Name), encodeKey(k), &w.effect.Keys,
			func(old []byte) error { return w.auditKey(old, k) })
		if err != nil {
			return err
		}
	}
	for i := range d.Edges {
		e := &d.Edges[i]
		if err := w.plain(textKey(prefixEdge, e.Name), encode(e), &w.effect.Edges,
			func(old []byte) error { return w.auditEdge(old, e) }); err != nil {
			return err
		}
	}
	for i := range d.Webhooks {
		h := &d.Webhooks[i]
		if err := w.plain(textKey(prefixWebhook, h.Name), encode(h), &w.effect.Webhooks,
			func(old []byte) error { return w.auditWebhook(old, h) }); err != nil {
			return err
		}
	}
	for i := range d.Logins {
		l := &d.Logins[i]
		if err := w.plain(textKey(prefixLogin, l.Name), encode(l), &w.effect.Logins,
			func(old []byte) error { return w.auditLogin(old, l) }); err != nil {
			return err
		}
	}
	for i := range d.Inbounds {
		b := &d.Inbounds[i]
		if err := w.plain(textKey(prefixInbound, b.Name), encode(b), &w.effect.Inbounds,
			func(old []byte) error { return w.auditInbound(old, b) }); err != nil {
			return err
		}
	}
	if d.Defaults != nil {
		err := w.plain(keyDefaults, encode(d.Defaults), &w.effect.Defaults,
			func(old []byte) error { return w.auditDefaults(old, d.Defaults) })
		if err != nil {
			return err
		}
	}
	if d.Sealing != nil {
		return w.plain(keySealing, encode(d.Sealing), &w.effect.Sealing, func(old []byte) error {
			return w.auditSealing(old,
				d.Sealing)
		})
	}
	return nil
}

func (w *writer) declareProject(p *catalog.ProjectConfig) error {
	rec, err := w.project(p)
	if err != nil {
		return err
	}
	if len(p.Domains) > maxCopies {
		rec = nil
	}
	for i := range p.Domains {
		d := p.Domains[i]
		d.ProjectID = p.Project.ID // the enclosing block decides
		if err := w.domain(&d, rec); err != nil {
			return err
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

// plain writes a record without times where it differs, and then sets changed and calls tell with the former one.
func (w *writer) plain(key, rec []byte, changed *bool, tell func(old []byte) error) error {
	old, err := w.load(key)
	if err == nil && !bytes.Equal(old, rec) {
		w.set(key, rec)
		*changed = true
		err = tell(old)
	}
	return err
}

// removePlain deletes a record without times, sets changed, and calls tell with it.
func (w *writer) removePlain(key []byte, changed *bool, tell func(old []byte) error) error {
	old, err := w.s.load(key)
	if err != nil {
		return err
	}
	w.delete(key)
	*changed = true
	if old == nil {
		return nil
	}
	return tell(old)
}
