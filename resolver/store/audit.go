package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"fingerpost/resolver/catalog"
)

// A NewEntry is an entry of the audit trail that a Change gives rise to.
type NewEntry struct {
	// Entry has the action, project, object and changes, and who made them.
	Entry catalog.AuditEntry
	After func() []catalog.Field // the object's fields now; nil if it is gone
	Days  int                    // of a removed project: how long its entries were kept
}

// audit adds an entry for what happened to an object to the effect. was is nil for a new object, is for one that goes.
func (w *writer) audit(was, is *catalog.Object) {
	if was != nil && is != nil && was.ProjectID != is.ProjectID {
		w.audit(was, nil)
		w.audit(nil, is)
		return
	}
	change := catalog.ChangeOf(was, is)
	o := change.Object()
	verb := change.Verb()
	if verb == "update" && len(change.Fields) == 0 {
		return
	}
	changes := change.Audited()
	by := cmp.Or(w.others[o.ProjectID], w.by)
	if by != nil && by.Door == catalog.DoorDNS && o.Kind == catalog.KindDomain {
		verb, changes = proofVerb(verb, changes, by.Reason)
	}
	e := catalog.AuditEntry{Action: o.Noun() + "." + verb, ProjectID: o.ProjectID, Slug: w.slugOf(o),
		Object: cmp.Or(o.Name, o.Slug), Changes: changes, Door: catalog.DoorFile}
	if by != nil {
		e.Door, e.Actor, e.Key, e.Subject = by.Door, by.Actor, by.Key, by.Subject
		e.RequestID, e.Commit = by.RequestID, by.Commit
	}
	entry := NewEntry{Entry: e}
	if is != nil {
		entry.After = is.Fields
	}
	w.effect.Objects = append(w.effect.Objects, entry)
}

// slugOf returns the slug of an object's project before the change. A new project is audited before what it contains.
func (w *writer) slugOf(o *catalog.Object) string {
	if o.ProjectID == 0 {
		return ""
	}
	if w.slug.project != o.ProjectID {
		slug, err := w.s.slug(o.ProjectID)
		if err != nil && w.err == nil {
			w.err = err
		}
		w.slug.project, w.slug.was = o.ProjectID, cmp.Or(slug, o.Slug)
	}
	return w.slug.was
}

// Slug returns the slug of a project; "" if there is none.
func (s *State) Slug(project int64) (slug string, err error) {
	err = s.read(func() error {
		slug, err = s.slug(project)
		return err
	})
	return slug, err
}

func (s *State) slug(project int64) (string, error) {
	rec, err := s.load(idKey(prefixProject, project))
	if err != nil || rec == nil {
		return "", err
	}
	var p catalog.Project
	_, err = decodeProjectOnly(&p, rec)
	return p.Slug, err
}

// proofVerb returns the verb for what the proof of a domain has changed, and the changes with the reason.
func proofVerb(verb string, changes []catalog.FieldChange, reason string) (string, []catalog.FieldChange) {
	i := slices.IndexFunc(changes, func(c catalog.FieldChange) bool { return c.Field == "verified" })
	if verb != "update" || i < 0 {
		return verb, changes
	}
	action := catalog.AuditVerify
	if changes[i].After == catalog.VerifiedLost {
		action = catalog.AuditLost
	}
	if reason != "" {
		changes = append(changes, catalog.FieldChange{Field: catalog.AuditReason, After: reason})
	}
	_, verb, _ = strings.Cut(action, ".")
	return verb, changes
}

// auditRecord audits an object that is new, changed, or with is nil removed. old is its record before, nil if there was
// none.
func auditRecord[T any](w *writer, old []byte, is *T, read func(*T, []byte) error,
	object func(*T) catalog.Object) error {
	if w.unaudited {
		return nil
	}
	var before, after *catalog.Object
	if old != nil {
		was := new(T)
		if err := read(was, old); err != nil {
			return err
		}
		o := object(was)
		before = &o
	}
	if is != nil {
		o := object(is)
		after = &o
	}
	w.audit(before, after)
	return nil
}

// auditDomain is auditRecord for a domain; old is without the copy of the project's record.
func (w *writer) auditDomain(old []byte, d *catalog.Domain) error {
	return auditRecord(w, old, d, domainRecord, (*catalog.Domain).Object)
}

func domainRecord(d *catalog.Domain, rec []byte) error {
	_, err := decodeDomain(d, rec)
	return err
}

func (w *writer) auditTemplate(old []byte, t *catalog.Template) error {
	return auditRecord(w, old, t, decodeTemplate, (*catalog.Template).Object)
}

func (w *writer) auditKey(old []byte, k *catalog.Key) error {
	return auditRecord(w, old, k, decodeKey, (*catalog.Key).Object)
}

func (w *writer) auditEdge(old []byte, e *catalog.Edge) error {
	return auditRecord(w, old, e, plainRecord, (*catalog.Edge).Object)
}

func (w *writer) auditWebhook(old []byte, h *catalog.Webhook) error {
	return auditRecord(w, old, h, plainRecord, (*catalog.Webhook).Object)
}

func (w *writer) auditLogin(old []byte, l *catalog.Login) error {
	return auditRecord(w, old, l, plainRecord, (*catalog.Login).Object)
}

func (w *writer) auditInbound(old []byte, b *catalog.Inbound) error {
	return auditRecord(w, old, b, plainRecord, (*catalog.Inbound).Object)
}

func (w *writer) auditDefaults(old []byte, d *catalog.Defaults) error {
	return auditRecord(w, old, d, plainRecord, (*catalog.Defaults).Object)
}

func (w *writer) auditSealing(old []byte, s *catalog.Sealing) error {
	return auditRecord(w, old, s, plainRecord, (*catalog.Sealing).Object)
}

// plainRecord is decode, with the arguments of decodeKey.
func plainRecord[T any](dst *T, rec []byte) error { return decode(rec, dst) }

// auditProject audits a project that is new, changed, or with p nil removed. was is the project before and old its
// settings, nil if there was none. is are the settings of p, which need no comparison if they have the same bytes.
func (w *writer) auditProject(was *catalog.Project, old []byte, p *catalog.ProjectConfig, is []byte) error {
	if w.unaudited {
		return nil
	}
	var before *catalog.ProjectConfig
	var wasObject, isObject *catalog.Object
	if w.slug.project, w.slug.was = was.ID, was.Slug; old == nil {
		w.slug.project, w.slug.was = p.Project.ID, p.Project.Slug
	}
	if old != nil {
		before = &catalog.ProjectConfig{Project: *was}
		o := before.Project.Object()
		wasObject = &o
	}
	if p != nil {
		o := p.Project.Object()
		isObject = &o
	}
	w.audit(wasObject, isObject)
	if bytes.Equal(old, is) {
		return nil
	}
	if before != nil {
		if err := decodeSettings(before, old); err != nil {
			return err
		}
	}
	defaults, err := w.defaults()
	if err != nil {
		return err
	}
	if p == nil {
		service, _ := defaults.InForce(before)
		w.effect.Objects[len(w.effect.Objects)-1].Days = service.AuditRetentionDays
		if o := before.SMTPObject(); o != nil {
			w.audit(o, nil)
		}
		return nil
	}
	w.auditSettings(before, p, defaults)
	return nil
}

// auditSettings audits the blocks in a project's. The settings exist from the start, with the values of the defaults.
func (w *writer) auditSettings(before, p *catalog.ProjectConfig, defaults *catalog.Defaults) {
	if before == nil {
		before = &catalog.ProjectConfig{Project: p.Project, Service: catalog.NewServiceSettings(),
			Auth: catalog.NewAuthSettings()}
	}
	if !p.Service.Same(&before.Service) || p.Service.Said != before.Service.Said {
		was, is := before.ServiceObject(defaults), p.ServiceObject(defaults)
		w.audit(&was, &is)
	}
	if !p.Auth.Same(&before.Auth) || p.Auth.Said != before.Auth.Said {
		was, is := before.AuthObject(defaults), p.AuthObject(defaults)
		w.audit(&was, &is)
	}
	if was, is := before.SMTPObject(), p.SMTPObject(); was != nil || is != nil {
		w.audit(was, is)
	}
}

// defaults returns the defaults block as it is after the change, an empty one if there is none.
func (w *writer) defaults() (*catalog.Defaults, error) {
	if w.inForce != nil {
		return w.inForce, nil
	}
	d := new(catalog.Defaults)
	rec, err := w.s.load(keyDefaults)
	if former := w.before[objectID{kind: catalog.KindDefaults}]; rec != nil && err == nil && (former == nil ||
		former.kept) {
		err = decode(rec, d)
	}
	w.inForce = d
	return d, err
}

// AuditID returns the id of the newest entry of the audit trail when the last change was committed: the trail may be
// ahead of a store that has lost its last commits. 0 if unknown.
func (s *State) AuditID() (id int64, err error) {
	err = s.read(func() error {
		v, _, err := s.uint(keyAudit)
		id = int64(v)
		return err
	})
	return id, err
}

func auditValue(id int64) []byte { return binary.AppendUvarint(nil, uint64(id)) }

// Object returns an object as it is now, as the audit trail tells of it: its settings are those in force. nil if there is
// none. project is 0 for what belongs to no project, and name "" where there is one of the kind.
func (s *State) Object(kind catalog.Kind, project int64, name string) (o *catalog.Object, err error) {
	err = s.read(func() error {
		o, err = s.object(kind, project, name)
		return err
	})
	return o, err
}

func (s *State) object(kind catalog.Kind, project int64, name string) (*catalog.Object, error) {
	switch kind {
	case catalog.KindProject, catalog.KindServiceSettings, catalog.KindAuthSettings, catalog.KindSMTPConfig:
		p := new(catalog.ProjectConfig)
		rec, err := s.load(idKey(prefixProject, project))
		if err == nil && rec != nil {
			err = decodeProject(p, rec)
		}
		if err != nil || rec == nil {
			return nil, err
		}
		w := writer{s: s}
		defaults, err := w.defaults()
		o := p.Project.Object()
		switch kind {
		case catalog.KindServiceSettings:
			o = p.ServiceObject(defaults)
		case catalog.KindAuthSettings:
			o = p.AuthObject(defaults)
		case catalog.KindSMTPConfig:
			return p.SMTPObject(), err
		}
		return &o, err
	case catalog.KindDomain:
		o, err := objectAt(s, appendDomainKey(nil, name), domainRecord, (*catalog.Domain).Object)
		if o != nil && o.ProjectID != project {
			o = nil
		}
		return o, err
	case catalog.KindTemplate:
		id, err := s.load(templateCodeKey(project, name))
		if err != nil || id == nil {
			return nil, err
		}
		return objectAt(s, append(idKey(prefixTemplate, project), id...), decodeTemplate, (*catalog.Template).Object)
	case catalog.KindKey:
		return objectAt(s, textKey(prefixKey, name), decodeKey, (*catalog.Key).Object)
	case catalog.KindEdge:
		return objectAt(s, textKey(prefixEdge, name), plainRecord, (*catalog.Edge).Object)
	case catalog.KindWebhook:
		return objectAt(s, textKey(prefixWebhook, name), plainRecord, (*catalog.Webhook).Object)
	case catalog.KindLogin:
		return objectAt(s, textKey(prefixLogin, name), plainRecord, (*catalog.Login).Object)
	case catalog.KindInbound:
		return objectAt(s, textKey(prefixInbound, name), plainRecord, (*catalog.Inbound).Object)
	case catalog.KindDefaults:
		return objectAt(s, keyDefaults, plainRecord, (*catalog.Defaults).Object)
	case catalog.KindSealing:
		return objectAt(s, keySealing, plainRecord, (*catalog.Sealing).Object)
	}
	return nil, nil
}

// objectAt returns the object with a record, nil if there is none.
func objectAt[T any](s *State, key []byte, read func(*T, []byte) error, object func(*T) catalog.Object) (*catalog.Object,
	error) {
	rec, err := s.load(key)
	if err != nil || rec == nil {
		return nil, err
	}
	v := new(T)
	if err := read(v, rec); err != nil {
		return nil, err
	}
	o := object(v)
	return &o, nil
}
