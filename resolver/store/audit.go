package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"fingerpost/resolver/catalog"
)

// An ObjectChange is what a Change did to one object, for the audit trail.
type ObjectChange struct {
	// Entry has the action, project, object and changes, and who made them.
	Entry catalog.AuditEntry
	After func() []catalog.Field // the object's fields now; nil if it is gone
	Days  int                    // of a removed project: how long its entries were kept
}

// A fieldsOf returns the fields of a noun; nil stands for an object that does not exist.
type fieldsOf = func() []catalog.Field

// The nouns in the actions of the audit trail.
const (
	auditProject         = "project"
	auditService         = "service-settings"
	auditAuth            = "auth-settings"
	auditSMTP            = "smtp-config"
	auditDomain          = "domain"
	auditTemplate        = "template"
	auditDefaultTemplate = "default-template"
	auditKey             = "key"
	auditEdge            = "edge"
	auditDefaults        = "defaults"
	auditSealing         = "sealing"
)

// tell adds what happened to an object to the effect.
func (w *writer) tell(noun string, project int64, object string, before, after fieldsOf) {
	verb, was, is := "update", []catalog.Field(nil), []catalog.Field(nil)
	if before != nil {
		was = before()
	}
	if after != nil {
		is = after()
	}
	switch {
	case noun == auditDefaults || noun == auditSealing: // there is one of each
	case before == nil:
		verb = "create"
	case after == nil:
		verb = "delete"
	}
	changes := catalog.FieldChanges(was, is)
	if verb == "update" && len(changes) == 0 {
		return
	}
	by := cmp.Or(w.others[project], w.by)
	if by != nil && by.Door == catalog.DoorDNS && noun == auditDomain {
		verb, changes = proofVerb(verb, changes, by.Reason)
	}
	e := catalog.AuditEntry{Action: noun + "." + verb, ProjectID: project, Object: object, Changes: changes,
		Door: catalog.DoorFile}
	if by != nil {
		e.Door, e.Actor, e.Key, e.RequestID, e.Commit = by.Door, by.Actor, by.Key, by.RequestID, by.Commit
	}
	w.effect.Objects = append(w.effect.Objects, ObjectChange{Entry: e, After: after})
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
	return strings.TrimPrefix(action, auditDomain+"."), changes
}

// tellProject tells of a project that is new, changed, or with p nil removed. was is the project before and old its
// settings, nil if there was none. is are the settings of p, which need no comparison if they have the same bytes.
func (w *writer) tellProject(was *catalog.Project, old []byte, p *catalog.ProjectConfig, is []byte) error {
	if w.untold {
		return nil
	}
	var before *catalog.ProjectConfig
	if old != nil {
		before = &catalog.ProjectConfig{Project: *was}
	}
	id, slug := was.ID, was.Slug
	if p != nil {
		id, slug = p.Project.ID, p.Project.Slug
	}
	w.tell(auditProject, id, slug, projectFields(before), projectFields(p))
	if bytes.Equal(old, is) {
		return nil
	}
	if before != nil {
		if err := decodeSettings(before, old); err != nil {
			return err
		}
	}
	if p == nil {
		defaults, err := w.defaults()
		if err != nil {
			return err
		}
		w.effect.Objects[len(w.effect.Objects)-1].Days = before.Service.Over(defaults.Service).AuditRetentionDays
	}
	return w.tellSettings(id, slug, before, p)
}

// tellSettings tells of the blocks in a project's. The settings exist from the start, with the values of the defaults.
func (w *writer) tellSettings(id int64, slug string, before, p *catalog.ProjectConfig) error {
	if p != nil {
		defaults, err := w.defaults()
		if err != nil {
			return err
		}
		from := before
		if from == nil {
			from = &catalog.ProjectConfig{Service: catalog.NewServiceSettings(), Auth: catalog.NewAuthSettings()}
		}
		if !p.Service.Same(&from.Service) || p.Service.Said != from.Service.Said {
			w.tell(auditService, id, slug, serviceFields(from, defaults), serviceFields(p, defaults))
		}
		if !p.Auth.Same(&from.Auth) || p.Auth.Said != from.Auth.Said {
			w.tell(auditAuth, id, slug, authFields(from, defaults), authFields(p, defaults))
		}
	}
	if before, after := smtpFields(before), smtpFields(p); before != nil || after != nil {
		w.tell(auditSMTP, id, slug, before, after)
	}
	return nil
}

func projectFields(p *catalog.ProjectConfig) fieldsOf {
	if p == nil {
		return nil
	}
	return p.Project.AllFields
}

func smtpFields(p *catalog.ProjectConfig) fieldsOf {
	if p == nil || p.SMTP == nil {
		return nil
	}
	return p.SMTP.Fields
}

// serviceFields and authFields have the values in force, as the API shows them.
func serviceFields(p *catalog.ProjectConfig, d *catalog.Defaults) fieldsOf {
	return func() []catalog.Field { s := p.Service.Over(d.Service); return s.Fields() }
}

func authFields(p *catalog.ProjectConfig, d *catalog.Defaults) fieldsOf {
	return func() []catalog.Field { a := p.Auth.Over(d.Auth); return a.Fields() }
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

// tellDomain tells of a domain that is new, changed, or with d nil removed. old is its record without the project's.
func (w *writer) tellDomain(old []byte, d *catalog.Domain) error {
	if w.untold {
		return nil
	}
	if old != nil {
		was := new(catalog.Domain)
		if _, err := decodeDomain(was, old); err != nil {
			return err
		}
		if d != nil && d.ProjectID == was.ProjectID {
			w.tell(auditDomain, d.ProjectID, d.Name, was.AllFields, d.AllFields)
			return nil
		}
		w.tell(auditDomain, was.ProjectID, was.Name, was.AllFields, nil)
	}
	if d != nil {
		w.tell(auditDomain, d.ProjectID, d.Name, nil, d.AllFields)
	}
	return nil
}

// tellTemplate tells of a template that is new, changed, or with t nil removed.
func (w *writer) tellTemplate(old []byte, t *catalog.Template) error {
	if w.untold {
		return nil
	}
	if old != nil {
		was := new(catalog.Template)
		if err := decodeTemplate(was, old); err != nil {
			return err
		}
		if t != nil && t.ProjectID == was.ProjectID {
			w.tell(templateNoun(t), t.ProjectID, t.Code, was.AllFields, t.AllFields)
			return nil
		}
		w.tell(templateNoun(was), was.ProjectID, was.Code, was.AllFields, nil)
	}
	if t != nil {
		w.tell(templateNoun(t), t.ProjectID, t.Code, nil, t.AllFields)
	}
	return nil
}

func templateNoun(t *catalog.Template) string {
	if t.ProjectID == 0 {
		return auditDefaultTemplate
	}
	return auditTemplate
}

// tellEdge tells of an edge that is new, changed, or with e nil removed.
func (w *writer) tellEdge(old []byte, e *catalog.Edge) error {
	if w.untold {
		return nil
	}
	var before, after fieldsOf
	name := ""
	if old != nil {
		was := new(catalog.Edge)
		if err := decode(old, was); err != nil {
			return err
		}
		name, before = was.Name, was.AllFields
	}
	if e != nil {
		name, after = e.Name, e.AllFields
	}
	w.tell(auditEdge, 0, name, before, after)
	return nil
}

// tellKey tells of a key that is new, changed, or with k nil removed.
func (w *writer) tellKey(old []byte, k *catalog.Key) error {
	if w.untold {
		return nil
	}
	var before, after fieldsOf
	name, rotated := "", false
	if old != nil {
		was := new(catalog.Key)
		if err := decodeKey(was, old); err != nil {
			return err
		}
		name, before = was.Name, was.AllFields
		rotated = k != nil && was.ID != k.ID
	}
	if k != nil {
		name, after = k.Name, k.AllFields
	}
	w.tell(auditKey, 0, name, before, after)
	if rotated {
		w.effect.Objects[len(w.effect.Objects)-1].Entry.Action = auditKey + ".rotate"
	}
	return nil
}

// tellDefaults tells of a defaults block that is new, changed, or with d nil removed.
func (w *writer) tellDefaults(old []byte, d *catalog.Defaults) error {
	return tellBlock(w, auditDefaults, old, d, (*catalog.Defaults).AllFields)
}

// tellSealing tells of a sealing block that is new, changed, or with z nil removed.
func (w *writer) tellSealing(old []byte, z *catalog.Sealing) error {
	return tellBlock(w, auditSealing, old, z, (*catalog.Sealing).AllFields)
}

func tellBlock[T any](w *writer, noun string, old []byte, is *T, fields func(*T) []catalog.Field) error {
	if w.untold {
		return nil
	}
	of := func(v *T) fieldsOf {
		if v == nil {
			return nil
		}
		return func() []catalog.Field { return fields(v) }
	}
	var was *T
	if old != nil {
		was = new(T)
		if err := decode(old, was); err != nil {
			return err
		}
	}
	w.tell(noun, 0, "", of(was), of(is))
	return nil
}

// AuditID returns the id of the newest entry of the audit trail when the last change was committed: the trail may be
// ahead of a store that has lost its last commits. 0 if unknown.
func (s *Store) AuditID() (id int64, err error) {
	err = s.read(func() error {
		v, _, err := s.uint(keyAudit)
		id = int64(v)
		return err
	})
	return id, err
}

func auditValue(id int64) []byte { return binary.AppendUvarint(nil, uint64(id)) }

// AllFields returns the present fields of an object of the audit trail, nil if there is none.
func (s *Store) AllFields(noun string, project int64, object string) (fields []catalog.Field, err error) {
	err = s.read(func() error {
		of, err := s.auditFields(noun, project, object)
		if of != nil {
			fields = of()
		}
		return err
	})
	return fields, err
}

func (s *Store) auditFields(noun string, project int64, object string) (fieldsOf, error) {
	load := func(key []byte, decode func(rec []byte) (fieldsOf, error)) (fieldsOf, error) {
		rec, err := s.load(key)
		if err != nil || rec == nil {
			return nil, err
		}
		return decode(rec)
	}
	switch noun {
	case auditProject, auditService, auditAuth, auditSMTP:
		return load(idKey(prefixProject, project), func(rec []byte) (fieldsOf, error) {
			w := writer{s: s}
			defaults, err := w.defaults()
			p := new(catalog.ProjectConfig)
			if err == nil {
				err = decodeProject(p, rec)
			}
			if err != nil {
				return nil, err
			}
			return map[string]fieldsOf{auditProject: projectFields(p), auditSMTP: smtpFields(p),
				auditService: serviceFields(p, defaults), auditAuth: authFields(p, defaults)}[noun], nil
		})
	case auditDomain:
		return load(appendDomainKey(nil, object), func(rec []byte) (fieldsOf, error) {
			d := new(catalog.Domain)
			if _, err := decodeDomain(d, rec); err != nil || d.ProjectID != project {
				return nil, err
			}
			return d.AllFields, nil
		})
	case auditTemplate, auditDefaultTemplate:
		return load(templateCodeKey(project, object), func(id []byte) (fieldsOf, error) {
			return load(append(idKey(prefixTemplate, project), id...), func(rec []byte) (fieldsOf, error) {
				t := new(catalog.Template)
				return t.AllFields, decodeTemplate(t, rec)
			})
		})
	case auditKey:
		return load(textKey(prefixKey, object), func(rec []byte) (fieldsOf, error) {
			k := new(catalog.Key)
			return k.AllFields, decodeKey(k, rec)
		})
	case auditDefaults:
		return load(keyDefaults, func(rec []byte) (fieldsOf, error) {
			d := new(catalog.Defaults)
			return d.AllFields, decode(rec, d)
		})
	case auditSealing:
		return load(keySealing, func(rec []byte) (fieldsOf, error) {
			z := new(catalog.Sealing)
			return z.AllFields, decode(rec, z)
		})
	}
	return nil, nil
}
