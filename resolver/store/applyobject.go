package store

import (
	"bytes"
	"encoding/binary"

	"fingerpost/resolver/catalog"
)

// project writes a project's record and its slug, and returns the record.
func (w *writer) project(p *catalog.ProjectConfig) (rec []byte, err error) {
	id, slug := p.Project.ID, p.Project.Slug
	key := idKey(prefixProject, id)
	old, err := w.load(key)
	if err != nil {
		return nil, err
	}
	var was catalog.Project
	var settings []byte
	if old == nil {
		w.counts.Projects++
	} else if settings, err = decodeProjectOnly(&was, old); err != nil {
		return nil, err
	}
	rec = encodeProject(p)
	own := marshal(&p.Project)
	if !w.inherit(catalog.KindProject, rec, old, own) {
		return rec, nil
	}
	if err := w.auditProject(&was, settings, p, rec[headerLen+len(own):]); err != nil {
		return nil, err
	}
	w.set(key, rec)
	if !bytes.Equal(settings, rec[headerLen+len(own):]) {
		if err := w.keySet(id, text(p.Auth.Rules.KeySetURL)); err != nil {
			return nil, err
		}
	}
	if was.Slug != slug {
		if was.Slug != "" {
			w.release(textKey(prefixSlug, was.Slug))
		}
		w.set(textKey(prefixSlug, slug), binary.BigEndian.AppendUint64(nil, uint64(id)))
	}
	names := make([]string, len(p.Domains))
	for i := range p.Domains {
		names[i] = p.Domains[i].Name
	}
	w.touchProject(ProjectEffect{ID: id, Slug: slug, Was: was.Slug, Domains: names, Owner: text(p.Project.Owner),
		Owned: text(was.Owner)})
	return rec, nil
}

// keySet writes the index of the projects whose files name a key set: url is "" for a project that names none.
func (w *writer) keySet(project int64, url string) error {
	key := idKey(prefixKeySet, project)
	if url != "" {
		w.set(key, []byte(url))
		return nil
	}
	old, err := w.load(key)
	if err == nil && old != nil {
		w.delete(key)
	}
	return err
}

// text returns the text that p points to, "" for nil.
func text(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

// touchProject adds an effect, if there is room for it.
func (w *writer) touchProject(p ProjectEffect) {
	if w.effect.touch(len(w.effect.Projects), maxProjectEffects) {
		w.effect.Projects = append(w.effect.Projects, p)
	}
}

// domain writes a domain's record with the copy of its project's, and the project's index of it.
func (w *writer) domain(d *catalog.Domain, projectCopy []byte) error {
	key := appendDomainKey(nil, d.Name)
	old, was, holder, err := w.loadDomain(key)
	if err != nil {
		return err
	}
	if old == nil {
		w.countDomain(d.Name, 1)
	} else if holder.ID != d.ID || holder.ProjectID != d.ProjectID {
		// Another object, in another project, had the name. Its entry there goes.
		w.release(idKey(prefixProjectHost, holder.ProjectID, holder.ID))
		if holder.ProjectID != d.ProjectID {
			w.touchDomain(DomainEffect{Name: d.Name, Project: holder.ProjectID, Gone: true})
		}
		if holder.ID != d.ID {
			old = nil
		}
	}
	isNew := old == nil
	if former := w.before[objectID{kind: catalog.KindDomain, id: d.ID}]; former != nil {
		isNew = true
		if former.ProjectID != d.ProjectID {
			w.release(idKey(prefixProjectHost, former.ProjectID, former.ID))
		}
		if former.Name != d.Name {
			if old, err = w.renamedDomain(&former.Ref); err != nil {
				return err
			}
		}
	}
	rec := newRecord(d.UUID, d)
	sameCopy := bytes.Equal(was, projectCopy)
	changed := w.inherit(catalog.KindDomain, rec, old, rec[headerLen:])
	if !changed && sameCopy {
		return nil
	}
	if changed {
		if err := w.auditDomain(old, d); err != nil {
			return err
		}
	}
	w.set(key, append(rec, projectCopy...))
	if changed {
		w.set(idKey(prefixProjectHost, d.ProjectID, d.ID), []byte(d.Name))
		w.touchDomain(DomainEffect{Name: d.Name, Project: d.ProjectID, New: isNew})
	}
	return nil
}

// loadDomain reads the domain that has a key, its record and its copy of the project's; nil if there is none.
func (w *writer) loadDomain(key []byte) (rec, projectCopy []byte, d catalog.Domain, err error) {
	value, err := w.load(key)
	if err == nil && value != nil {
		projectCopy, err = decodeDomain(&d, value)
	}
	return value[:len(value)-len(projectCopy)], projectCopy, d, err
}

// renamedDomain gives up the former name and returns the record under it; nil when another object has that name now.
func (w *writer) renamedDomain(former *catalog.Ref) ([]byte, error) {
	key := appendDomainKey(nil, former.Name)
	old, _, d, err := w.loadDomain(key)
	if err != nil || old == nil || d.ID != former.ID {
		return nil, err
	}
	w.release(key)
	w.touchDomain(DomainEffect{Name: former.Name, Project: former.ProjectID, Gone: true})
	return old, nil
}

func isWildcard(name string) bool { return len(name) > 2 && name[0] == '*' }

// touchDomain adds an effect on a name, if there is room for it.
func (w *writer) touchDomain(d DomainEffect) {
	if w.effect.touch(len(w.effect.Domains), maxDomainEffects) {
		w.effect.Domains = append(w.effect.Domains, d)
	}
}

func (w *writer) countDomain(name string, n int) {
	w.counts.Domains += n
	if isWildcard(name) {
		w.counts.Wildcards += n
	}
}

// template writes one template and its code.
func (w *writer) template(t *catalog.Template) error {
	key := idKey(prefixTemplate, t.ProjectID, t.ID)
	old, err := w.load(key)
	if err != nil {
		return err
	}
	if former := w.before[objectID{kind: catalog.KindTemplate, id: t.ID}]; former != nil {
		if former.ProjectID != t.ProjectID {
			// The template moved between projects, or between a project and the defaults.
			movedFrom := idKey(prefixTemplate, former.ProjectID, former.ID)
			if old, err = w.s.load(movedFrom); err != nil {
				return err
			}
			w.delete(movedFrom)
		}
		if former.ProjectID != t.ProjectID || former.Name != t.Code {
			w.release(templateCodeKey(former.ProjectID, former.Name))
		}
	}
	rec := newRecord(t.UUID, t)
	if !w.inherit(catalog.KindTemplate, rec, old, rec[headerLen:]) {
		return nil
	}
	if err := w.auditTemplate(old, t); err != nil {
		return err
	}
	w.set(key, rec)
	w.set(templateCodeKey(t.ProjectID, t.Code), binary.BigEndian.AppendUint64(nil, uint64(t.ID)))
	return nil
}

// remove deletes an object that no file declares any more.
func (w *writer) remove(ref *catalog.Ref) error {
	switch ref.Kind {
	case catalog.KindProject:
		return w.removeProject(ref)
	case catalog.KindDomain:
		old, err := w.renamedDomain(ref)
		w.release(idKey(prefixProjectHost, ref.ProjectID, ref.ID))
		if err != nil || old == nil {
			return err
		}
		return w.auditDomain(old, nil)
	case catalog.KindTemplate:
		key := idKey(prefixTemplate, ref.ProjectID, ref.ID)
		old, err := w.s.load(key)
		w.delete(key)
		w.release(templateCodeKey(ref.ProjectID, ref.Name))
		if err != nil || old == nil {
			return err
		}
		return w.auditTemplate(old, nil)
	case catalog.KindKey:
		return w.removePlain(textKey(prefixKey, ref.Name), &w.effect.Keys, func(old []byte) error {
			return w.auditKey(old,
				nil)
		})
	case catalog.KindEdge:
		return w.removePlain(textKey(prefixEdge, ref.Name), &w.effect.Edges, func(old []byte) error {
			return w.auditEdge(old,
				nil)
		})
	case catalog.KindWebhook:
		return w.removePlain(textKey(prefixWebhook, ref.Name), &w.effect.Webhooks,
			func(old []byte) error { return w.auditWebhook(old, nil) })
	case catalog.KindLogin:
		return w.removePlain(textKey(prefixLogin, ref.Name), &w.effect.Logins,
			func(old []byte) error { return w.auditLogin(old, nil) })
	case catalog.KindInbound:
		return w.removePlain(textKey(prefixInbound, ref.Name), &w.effect.Inbounds,
			func(old []byte) error { return w.auditInbound(old, nil) })
	case catalog.KindDefaults:
		return w.removePlain(keyDefaults, &w.effect.Defaults, func(old []byte) error { return w.auditDefaults(old, nil) })
	case catalog.KindSealing:
		return w.removePlain(keySealing, &w.effect.Sealing, func(old []byte) error { return w.auditSealing(old, nil) })
	}
	return nil
}

func (w *writer) removeProject(ref *catalog.Ref) error {
	key := idKey(prefixProject, ref.ID)
	old, err := w.s.load(key)
	if err != nil || old == nil {
		return err
	}
	var was catalog.Project
	settings, err := decodeProjectOnly(&was, old)
	if err == nil {
		err = w.auditProject(&was, settings, nil, nil)
	}
	if err != nil {
		return err
	}
	if err := w.keySet(ref.ID, ""); err != nil {
		return err
	}
	w.delete(key)
	w.counts.Projects--
	w.release(textKey(prefixSlug, was.Slug))
	w.touchProject(ProjectEffect{ID: ref.ID, Gone: true, Slug: was.Slug, Was: was.Slug, Owner: text(was.Owner),
		Owned: text(was.Owner)})
	return nil
}

// dropReleased deletes the index keys that were given up and that no other object took.
func (w *writer) dropReleased(c *catalog.Change) error {
	eachRef(c, w.claim)
	for key := range w.released {
		if key[0] == prefixDomain {
			old, err := w.s.load([]byte(key))
			if err != nil {
				return err
			}
			if old == nil {
				continue
			}
			w.countDomain(string(nameIn([]byte(key))), -1)
		}
		w.delete([]byte(key))
	}
	return nil
}

// claim removes from w.released every key that the object uses.
func (w *writer) claim(r catalog.Ref) {
	switch r.Kind {
	case catalog.KindProject:
		delete(w.released, string(prefixSlug)+r.Name)
	case catalog.KindDomain:
		delete(w.released, string(appendDomainKey(nil, r.Name)))
		delete(w.released, string(idKey(prefixProjectHost, r.ProjectID, r.ID)))
	case catalog.KindTemplate:
		delete(w.released, string(templateCodeKey(r.ProjectID, r.Name)))
	}
}
