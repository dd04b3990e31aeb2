package store

import (
	"bytes"

	"fingerpost/resolver/catalog"
)

// project writes a project's record and its slug, and returns the record. Its effect is valid until the next call, and
// nil when nothing changed or the Effect is full.
func (w *writer) project(p *catalog.ProjectConfig) (rec []byte, _ *ProjectEffect, err error) {
	w.key = appendProjectKey(w.key[:0], p.Project.ID)
	old, err := w.load(w.key)
	if err != nil {
		return nil, nil, err
	}
	var was catalog.Project
	if old == nil {
		w.counts.Projects++
	} else if _, err := decodeProjectOnly(&was, old); err != nil {
		return nil, nil, err
	}
	rec = encodeProject(p)
	changed, err := w.inherit(rec, old, appendCBOR(nil, &p.Project))
	if err != nil || !changed {
		return rec, nil, err
	}
	w.set(w.key, rec)
	if was.Slug != "" && was.Slug != p.Project.Slug {
		w.release(w.indexed(appendTextKey(w.index[:0], prefixSlug, was.Slug)))
	}
	w.set(w.indexed(appendTextKey(w.index[:0], prefixSlug, p.Project.Slug)), appendID(nil, p.Project.ID))
	return rec, w.touchProject(ProjectEffect{ID: p.Project.ID, Slug: p.Project.Slug, Was: was.Slug}), nil
}

// indexed keeps the buffer of an index key for the next one.
func (w *writer) indexed(key []byte) []byte {
	w.index = key
	return key
}

// touchProject adds an effect, if there is room for it.
func (w *writer) touchProject(p ProjectEffect) *ProjectEffect {
	if !w.effect.touch(len(w.effect.Projects), maxProjectEffects) {
		return nil
	}
	w.effect.Projects = append(w.effect.Projects, p)
	return &w.effect.Projects[len(w.effect.Projects)-1]
}

// domain writes a domain's record with the copy of its project's, and the project's index of it.
func (w *writer) domain(d *catalog.Domain, projectCopy []byte) error {
	old, was, holder, err := w.loadDomain(d.Name)
	if err != nil {
		return err
	}
	if old == nil {
		w.countDomain(d.Name, 1)
	} else if holder.ID != d.ID || holder.ProjectID != d.ProjectID {
		// Another object, in another project, had the name. Its entry there goes.
		w.release(w.indexed(appendHostKey(w.index[:0], holder.ProjectID, holder.ID)))
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
			w.release(w.indexed(appendHostKey(w.index[:0], former.ProjectID, former.ID)))
		}
		if former.Name != d.Name {
			if old, err = w.renamedDomain(&former.Ref); err != nil {
				return err
			}
		}
	}
	rec := encodeDomain(d)
	sameCopy := bytes.Equal(was, projectCopy)
	changed, err := w.inherit(rec, old, rec[headerLen:])
	if err != nil || !changed && sameCopy {
		return err
	}
	w.key = appendDomainKey(w.key[:0], d.Name)
	w.set(w.key, append(rec, projectCopy...))
	if changed {
		w.set(w.indexed(appendHostKey(w.index[:0], d.ProjectID, d.ID)), []byte(d.Name))
		w.touchDomain(DomainEffect{Name: d.Name, Project: d.ProjectID, New: isNew})
	}
	return nil
}

// loadDomain reads the domain that has a name, its record and its copy of the project's; nil if there is none, see load.
func (w *writer) loadDomain(name string) (rec, projectCopy []byte, d catalog.Domain, err error) {
	w.key = appendDomainKey(w.key[:0], name)
	value, err := w.load(w.key)
	if err == nil && value != nil {
		projectCopy, err = decodeDomain(&d, value)
	}
	return value[:len(value)-len(projectCopy)], projectCopy, d, err
}

// renamedDomain gives up the former name and returns the record under it; nil when another object has that name now.
func (w *writer) renamedDomain(former *catalog.Ref) ([]byte, error) {
	old, _, d, err := w.loadDomain(former.Name)
	if err != nil || old == nil || d.ID != former.ID {
		return nil, err
	}
	w.release(w.key)
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
	w.key = appendTemplateKey(w.key[:0], t.ProjectID, t.ID)
	old, err := w.load(w.key)
	if err != nil {
		return err
	}
	if former := w.before[objectID{kind: catalog.KindTemplate, id: t.ID}]; former != nil {
		if former.ProjectID != t.ProjectID {
			// The template moved between projects, or between a project and the defaults.
			movedFrom := appendTemplateKey(nil, former.ProjectID, former.ID)
			if old, err = w.load(movedFrom); err != nil {
				return err
			}
			w.delete(movedFrom)
		}
		if former.ProjectID != t.ProjectID || former.Name != t.Code {
			w.release(appendTemplateCodeKey(nil, former.ProjectID, former.Name))
		}
	}
	rec := encodeTemplate(t)
	changed, err := w.inherit(rec, old, rec[headerLen:])
	if err != nil || !changed {
		return err
	}
	w.set(w.key, rec)
	w.set(w.indexed(appendTemplateCodeKey(w.index[:0], t.ProjectID, t.Code)), appendID(nil, t.ID))
	return nil
}

// remove deletes an object that no file declares any more.
func (w *writer) remove(ref *catalog.Ref) error {
	switch ref.Kind {
	case catalog.KindProject:
		return w.removeProject(ref)
	case catalog.KindDomain:
		_, err := w.renamedDomain(ref)
		w.release(appendHostKey(nil, ref.ProjectID, ref.ID))
		return err
	case catalog.KindTemplate:
		w.delete(appendTemplateKey(nil, ref.ProjectID, ref.ID))
		w.release(appendTemplateCodeKey(nil, ref.ProjectID, ref.Name))
	case catalog.KindKey:
		w.delete(appendTextKey(nil, prefixKey, ref.Name))
		w.effect.Keys = true
	case catalog.KindDefaults:
		w.delete(keyDefaults)
		w.effect.Defaults = true
	case catalog.KindSealing:
		w.delete(keySealing)
		w.effect.Sealing = true
	}
	return nil
}

func (w *writer) removeProject(ref *catalog.Ref) error {
	key := appendProjectKey(nil, ref.ID)
	old, err := w.load(key)
	if err != nil || old == nil {
		return err
	}
	var was catalog.Project
	if _, err := decodeProjectOnly(&was, old); err != nil {
		return err
	}
	w.delete(key)
	w.counts.Projects--
	w.release(appendTextKey(nil, prefixSlug, was.Slug))
	w.touchProject(ProjectEffect{ID: ref.ID, Gone: true, Slug: was.Slug, Was: was.Slug})
	return nil
}

// dropReleased deletes the index keys that were given up and that no other object took.
func (w *writer) dropReleased(c *catalog.Change) error {
	if len(w.released) == 0 {
		return nil
	}
	eachRef(c, w.claim)
	for key := range w.released {
		if key[0] == prefixDomain {
			old, err := w.load([]byte(key))
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
		delete(w.released, string(w.indexed(appendTextKey(w.index[:0], prefixSlug, r.Name))))
	case catalog.KindDomain:
		delete(w.released, string(w.indexed(appendDomainKey(w.index[:0], r.Name))))
		delete(w.released, string(w.indexed(appendHostKey(w.index[:0], r.ProjectID, r.ID))))
	case catalog.KindTemplate:
		delete(w.released, string(w.indexed(appendTemplateCodeKey(w.index[:0], r.ProjectID, r.Name))))
	}
}
