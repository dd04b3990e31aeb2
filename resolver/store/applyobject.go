package store

import (
	"bytes"
	"encoding/binary"

	"fingerpost/resolver/catalog"
)

// project writes a project's own record, which stays in w.own, and its slug. It returns its effect, valid until the
// next call; nil when nothing changed or the Effect is full.
func (w *writer) project(id int64, rec []byte) (*ProjectEffect, error) {
	slug := storedSlug(rec)
	if len(slug) == 0 {
		return nil, errPacked
	}
	w.key = appendProjectKey(w.key[:0], id)
	old, err := w.load(w.key)
	if err != nil {
		return nil, err
	}
	if old == nil {
		w.counts.Projects++
	}
	same := sound(old) && sameObject(old, rec)
	if same && bytes.Equal(old[headerLen:], rec[headerLen:]) {
		w.own = append(w.own[:0], old...)
		return nil, nil
	}
	w.own = append(w.own[:0], rec...)
	if same {
		created, updated := recordTimes(old)
		if !bytes.Equal(ownPart(old), ownPart(rec)) {
			updated = w.later(updated)
		}
		setRecordTimes(w.own, created, updated)
	} else {
		setRecordTimes(w.own, w.now, w.now)
	}
	w.set(w.key, w.own)
	was := storedSlug(old)
	if len(was) > 0 && !bytes.Equal(was, slug) {
		w.release(w.indexed(appendTextKey(w.index[:0], prefixSlug, was)))
	}
	w.rec = appendID(w.rec[:0], id)
	w.set(w.indexed(appendTextKey(w.index[:0], prefixSlug, slug)), w.rec)
	return w.touchProject(ProjectEffect{ID: id}, slug, was), nil
}

// indexed keeps the buffer of an index key for the next one.
func (w *writer) indexed(key []byte) []byte {
	w.index = key
	return key
}

// touchProject adds an effect, if there is room for it.
func (w *writer) touchProject(p ProjectEffect, slug, was []byte) *ProjectEffect {
	if !w.effect.touch(len(w.effect.Projects), maxProjectEffects) {
		return nil
	}
	p.Slug, p.Was = string(slug), string(was)
	w.effect.Projects = append(w.effect.Projects, p)
	return &w.effect.Projects[len(w.effect.Projects)-1]
}

// storedSlug returns the slug in an encoded project; empty when the bytes cannot be decoded.
func storedSlug(rec []byte) []byte {
	d := borrow(ownPart(rec))
	d.uint() // length of the part
	return bytesOf(d.string())
}

// domain writes a domain record with the copy of its project's record, and the project's index of it. The returned name
// aliases rec.
func (w *writer) domain(rec []byte, project int64, projectCopy []byte) (name []byte, err error) {
	ref := domainRef(rec)
	if name = storedName(rec); len(name) == 0 || ref.ProjectID != project {
		return nil, errPacked
	}
	w.key = appendDomainKey(w.key[:0], name)
	old, was, err := w.loadDomain(w.key)
	if err != nil {
		return nil, err
	}
	if old == nil {
		w.countDomain(name, 1)
	} else if holder := domainRef(old); holder.ID != ref.ID || holder.ProjectID != project {
		// Another object, in another project, had the name. Its entry there goes.
		w.release(w.indexed(appendHostKey(w.index[:0], holder.ProjectID, holder.ID)))
		if holder.ProjectID != project {
			w.touchDomain(name, DomainEffect{Project: holder.ProjectID, Gone: true})
		}
		if holder.ID != ref.ID {
			old = nil
		}
	}
	isNew := old == nil
	if former := w.before[objectID{kind: catalog.KindDomain, id: ref.ID}]; former != nil {
		isNew = true
		if former.ProjectID != project {
			w.release(w.indexed(appendHostKey(w.index[:0], former.ProjectID, former.ID)))
		}
		if former.Name != string(name) {
			if old, err = w.renamedDomain(&former.Ref); err != nil {
				return nil, err
			}
		}
	}
	w.rec = append(w.rec[:0], rec...)
	changed := w.stampTimes(old)
	if !changed && bytes.Equal(was, projectCopy) {
		return name, nil
	}
	w.rec = withProject(w.rec, projectCopy)
	w.key = appendDomainKey(w.key[:0], name)
	w.set(w.key, w.rec)
	if changed {
		w.set(w.indexed(appendHostKey(w.index[:0], project, ref.ID)), name)
		w.touchDomain(name, DomainEffect{Project: project, New: isNew})
	}
	return name, nil
}

// loadDomain reads a domain's record and its copy of the project's record; nil if there is none, see load.
func (w *writer) loadDomain(key []byte) (domain, projectCopy []byte, err error) {
	value, err := w.load(key)
	if err != nil || value == nil {
		return nil, nil, err
	}
	if domain, projectCopy = split(value); domain == nil {
		return nil, nil, errRecord
	}
	return domain, projectCopy, nil
}

// renamedDomain gives up the former name and returns the record under it; nil when another object has that name now.
func (w *writer) renamedDomain(former *catalog.Ref) ([]byte, error) {
	w.key = appendDomainKey(w.key[:0], former.Name)
	old, _, err := w.loadDomain(w.key)
	if err != nil || old == nil || domainRef(old).ID != former.ID {
		return nil, err
	}
	w.release(w.key)
	w.touchDomain([]byte(former.Name), DomainEffect{Project: former.ProjectID, Gone: true})
	return old, nil
}

// domainRef reads the ids from an encoded domain; zero when the bytes cannot be decoded.
func domainRef(rec []byte) (r catalog.Ref) {
	if sound(rec) && len(rec) >= headerLen+16 {
		r.ID = int64(binary.BigEndian.Uint64(rec[headerLen:]))
		r.ProjectID = int64(binary.BigEndian.Uint64(rec[headerLen+8:]))
	}
	return r
}

// storedName returns the name in an encoded domain, or the code in a template; empty when the bytes are neither.
func storedName(rec []byte) []byte {
	if !sound(rec) || len(rec) < headerLen+16 {
		return nil
	}
	rec = rec[headerLen+16:]
	n, size := binary.Uvarint(rec)
	if size <= 0 || n > uint64(len(rec)-size) {
		return nil
	}
	return rec[size : size+int(n)]
}

func isWildcard[T string | []byte](name T) bool { return len(name) > 2 && name[0] == '*' }

// touchDomain adds an effect on a name, if there is room for it.
func (w *writer) touchDomain(name []byte, d DomainEffect) {
	if w.effect.touch(len(w.effect.Domains), maxDomainEffects) {
		d.Name = string(name)
		w.effect.Domains = append(w.effect.Domains, d)
	}
}

func (w *writer) countDomain(name []byte, n int) {
	w.counts.Domains += n
	if isWildcard(name) {
		w.counts.Wildcards += n
	}
}

// template writes one template and its code.
func (w *writer) template(rec []byte, project int64) error {
	ref, code := domainRef(rec), storedName(rec)
	if len(code) == 0 || ref.ProjectID != project {
		return errPacked
	}
	w.key = appendTemplateKey(w.key[:0], project, ref.ID)
	old, err := w.load(w.key)
	if err != nil {
		return err
	}
	if former := w.before[objectID{kind: catalog.KindTemplate, id: ref.ID}]; former != nil {
		if former.ProjectID != project {
			// The template moved between projects, or between a project and the defaults.
			movedFrom := appendTemplateKey(nil, former.ProjectID, former.ID)
			if old, err = w.load(movedFrom); err != nil {
				return err
			}
			w.delete(movedFrom)
		}
		if former.ProjectID != project || former.Name != string(code) {
			w.release(appendTemplateCodeKey(nil, former.ProjectID, former.Name))
		}
	}
	w.rec = append(w.rec[:0], rec...)
	if !w.stampTimes(old) {
		return nil
	}
	w.set(w.key, w.rec)
	w.rec = appendID(w.rec[:0], ref.ID)
	w.set(w.indexed(append(appendTemplateCodeKey(w.index[:0], project, ""), code...)), w.rec)
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
	w.delete(key)
	w.counts.Projects--
	slug := storedSlug(old)
	if len(slug) > 0 {
		w.release(appendTextKey(nil, prefixSlug, slug))
	}
	w.touchProject(ProjectEffect{ID: ref.ID, Gone: true}, slug, slug)
	return nil
}

// dropReleased deletes the index keys that were given up and that no other object took.
func (w *writer) dropReleased(c *catalog.Change) error {
	if len(w.released) == 0 {
		return nil
	}
	if err := w.eachRefs(c, w.claim); err != nil {
		return err
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
			w.countDomain(nameIn([]byte(key)), -1)
		}
		w.delete([]byte(key))
	}
	return nil
}

// claim removes from w.released every key that the objects in refs use.
func (w *writer) claim(refs []byte) error {
	d := borrow(refs)
	w.former = d.refs(w.former[:0])
	for i := range w.former {
		switch r := &w.former[i]; r.Kind {
		case catalog.KindProject:
			delete(w.released, string(w.indexed(appendTextKey(w.index[:0], prefixSlug, r.Name))))
		case catalog.KindDomain:
			delete(w.released, string(w.indexed(appendDomainKey(w.index[:0], r.Name))))
			delete(w.released, string(w.indexed(appendHostKey(w.index[:0], r.ProjectID, r.ID))))
		case catalog.KindTemplate:
			delete(w.released, string(w.indexed(appendTemplateCodeKey(w.index[:0], r.ProjectID, r.Name))))
		}
	}
	clear(w.former) // the refs are borrowed
	return d.err()
}
