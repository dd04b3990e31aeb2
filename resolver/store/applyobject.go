package store

import (
	"bytes"
	"encoding/binary"

	"fingerpost/resolver/catalog"
)

// project writes a project block's own record, which it leaves in w.own, and its slug.
func (w *writer) project(p *catalog.ProjectConfig) error {
	id := p.Project.ID
	w.key = appendProjectKey(w.key[:0], id)
	old, err := w.load(w.key)
	if err != nil {
		return err
	}
	w.rec = appendProject(w.rec[:0], p)
	if old == nil {
		w.counts.Projects++
	}
	switch {
	case !sound(old) || !sameObject(old, w.rec):
		setRecordTimes(w.rec, w.now, w.now)
	case bytes.Equal(old[headerLen:], w.rec[headerLen:]):
		w.own = append(w.own[:0], old...)
		return nil
	default:
		created, updated := recordTimes(old)
		if !bytes.Equal(ownPart(old), ownPart(w.rec)) {
			updated = w.later(updated)
		}
		setRecordTimes(w.rec, created, updated)
	}
	was := storedSlug(old)
	if was != "" && was != p.Project.Slug {
		w.release(appendTextKey(nil, prefixSlug, was))
	}
	w.set(w.key, w.rec)
	w.own = append(w.own[:0], w.rec...)
	w.key = appendTextKey(w.key[:0], prefixSlug, p.Project.Slug)
	w.set(w.key, appendID(nil, id))
	w.effect.Projects = append(w.effect.Projects, ProjectEffect{ID: id, Slug: p.Project.Slug, Was: was, Domains: p.Domains})
	return nil
}

func storedSlug(rec []byte) string {
	own := ownPart(rec)
	d := decoder{s: string(own)}
	d.uint()
	return d.string()
}

// domain writes one domain record with what stands beside it, and the project's index of it.
func (w *writer) domain(dom *catalog.Domain, project int64, beside []byte) error {
	record := *dom
	record.ProjectID = project // the block that it stands in decides
	w.key = appendTextKey(w.key[:0], prefixDomain, record.Name)
	old, was, err := w.loadDomain(w.key)
	if err != nil {
		return err
	}
	if old == nil {
		w.countDomain(record.Name, 1)
	} else if holder := domainRef(old); holder.ID != record.ID || holder.ProjectID != project {
		// Another object has had the name, in another project. Its own entry there goes.
		w.release(appendHostKey(nil, holder.ProjectID, holder.ID))
		if holder.ProjectID != project {
			w.touchDomain(DomainEffect{Name: record.Name, Project: holder.ProjectID, Gone: true})
		}
		if holder.ID != record.ID {
			old = nil
		}
	}
	isNew := old == nil
	if former := w.before[objectID{kind: catalog.KindDomain, id: record.ID}]; former != nil {
		isNew = true
		if former.ProjectID != project {
			w.release(appendHostKey(nil, former.ProjectID, former.ID))
		}
		if former.Name != record.Name {
			if old, err = w.renamedDomain(&former.Ref); err != nil {
				return err
			}
		}
	}
	w.rec = appendDomain(w.rec[:0], &record)
	changed := w.stampTimes(old)
	if !changed && bytes.Equal(was, beside) {
		return nil
	}
	w.rec = withProject(w.rec, beside)
	w.key = appendTextKey(w.key[:0], prefixDomain, record.Name)
	w.set(w.key, w.rec)
	if !changed {
		return nil
	}
	w.set(appendHostKey(nil, project, record.ID), []byte(record.Name))
	w.touchDomain(DomainEffect{Name: record.Name, Project: project, New: isNew})
	return nil
}

// loadDomain reads a domain's record and what stands beside it, or nil. Both lie in w.old.
func (w *writer) loadDomain(key []byte) (domain, beside []byte, err error) {
	value, err := w.load(key)
	if err != nil || value == nil {
		return nil, nil, err
	}
	if domain, beside = split(value); domain == nil {
		return nil, nil, errRecord
	}
	return domain, beside, nil
}

// renamedDomain gives the former name up and returns the record under it, nil when that is another object's by now.
func (w *writer) renamedDomain(former *catalog.Ref) ([]byte, error) {
	w.key = appendTextKey(w.key[:0], prefixDomain, former.Name)
	old, _, err := w.loadDomain(w.key)
	if err != nil || old == nil || domainRef(old).ID != former.ID {
		return nil, err
	}
	w.release(w.key)
	w.touchDomain(DomainEffect{Name: former.Name, Project: former.ProjectID, Gone: true})
	return old, nil
}

// domainRef reads the ids out of an encoded domain; zero for bytes that are none.
func domainRef(rec []byte) (r catalog.Ref) {
	if sound(rec) && len(rec) >= headerLen+16 {
		r.ID = int64(binary.BigEndian.Uint64(rec[headerLen:]))
		r.ProjectID = int64(binary.BigEndian.Uint64(rec[headerLen+8:]))
	}
	return r
}

func isWildcard(name string) bool { return len(name) > 2 && name[0] == '*' }

func (w *writer) touchDomain(d DomainEffect) { w.effect.Domains = append(w.effect.Domains, d) }

func (w *writer) countDomain(name string, n int) {
	w.counts.Domains += n
	if isWildcard(name) {
		w.counts.Wildcards += n
	}
}

// template writes one template and its code.
func (w *writer) template(t *catalog.Template, project int64) error {
	record := *t
	record.ProjectID = project
	w.key = appendTemplateKey(w.key[:0], project, record.ID)
	old, err := w.load(w.key)
	if err != nil {
		return err
	}
	if former := w.before[objectID{kind: catalog.KindTemplate, id: record.ID}]; former != nil {
		if former.ProjectID != project {
			// It moved between projects, or between a project and the defaults.
			movedFrom := appendTemplateKey(nil, former.ProjectID, former.ID)
			if old, err = w.load(movedFrom); err != nil {
				return err
			}
			w.delete(movedFrom)
		}
		if former.ProjectID != project || former.Name != record.Code {
			w.release(appendTemplateCodeKey(nil, former.ProjectID, former.Name))
		}
	}
	w.rec = appendTemplate(w.rec[:0], &record)
	if !w.stampTimes(old) {
		return nil
	}
	w.set(w.key, w.rec)
	w.set(appendTemplateCodeKey(nil, project, record.Code), appendID(nil, record.ID))
	return nil
}

// remove takes an object away that no file declares any more.
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
	w.delete(key)
	w.counts.Projects--
	slug := storedSlug(old)
	if slug != "" {
		w.release(appendTextKey(nil, prefixSlug, slug))
	}
	w.effect.Projects = append(w.effect.Projects, ProjectEffect{ID: ref.ID, Slug: slug, Was: slug, Gone: true})
	return nil
}

// dropReleased deletes the index keys that were given up and not taken up by another object.
func (w *writer) dropReleased(c *catalog.Change) error {
	if len(w.released) == 0 {
		return nil
	}
	for i := range c.Files {
		d, _, err := content(&c.Files[i])
		if err != nil {
			return err
		}
		if d != nil {
			w.claim(d)
		}
		w.rest(c, i)
	}
	for key := range w.released {
		if key[0] == prefixDomain {
			old, err := w.load([]byte(key))
			if err != nil {
				return err
			}
			if old == nil {
				continue
			}
			w.countDomain(key[1:], -1)
		}
		w.delete([]byte(key))
	}
	return nil
}

// claim takes all that d uses off the list.
func (w *writer) claim(d *catalog.Declared) {
	for i := range d.Projects {
		p := &d.Projects[i]
		delete(w.released, string(appendTextKey(nil, prefixSlug, p.Project.Slug)))
		for j := range p.Domains {
			dom := &p.Domains[j]
			delete(w.released, string(appendTextKey(nil, prefixDomain, dom.Name)))
			delete(w.released, string(appendHostKey(nil, p.Project.ID, dom.ID)))
		}
		for j := range p.Templates {
			delete(w.released, string(appendTemplateCodeKey(nil, p.Project.ID, p.Templates[j].Code)))
		}
	}
	for i := range d.Templates {
		delete(w.released, string(appendTemplateCodeKey(nil, 0, d.Templates[i].Code)))
	}
}
