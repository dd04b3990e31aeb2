package resolver

import (
	"context"
	"errors"
	"time"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/ledger"
	"fingerpost/resolver/store"
)

// flushAudit gives a ledger that is back the entries that wait.
func (r *Resolver) flushAudit() {
	r.applying.Lock()
	defer r.applying.Unlock()
	r.applying.trail.CatchUp(r.stores.Writes(), r.TrailLedger())
}

// Note appends an entry that tells of no change of an object, such as catalog.AuditConfirm. It is durable when Note
// returns. If the ledger refuses it, the entry waits in memory.
func (r *Resolver) Note(action string, by catalog.Author, changes ...catalog.FieldChange) {
	r.NoteObject(action, "", by, changes...)
}

// NoteObject is Note for what has happened to an object of no project, without a change of it.
func (r *Resolver) NoteObject(action, object string, by catalog.Author, changes ...catalog.FieldChange) {
	r.noteEntry(catalog.AuditEntry{Action: action, Object: object, Changes: changes, Door: by.Door, Actor: by.Actor,
		Key: by.Key, Subject: by.Subject, RequestID: by.RequestID, Commit: by.Commit})
}

// NoteDomain is Note for what has happened to a project's domain without a change of its record.
func (r *Resolver) NoteDomain(action string, project int64, domain string, by catalog.Author,
	changes ...catalog.FieldChange) {
	r.noteEntry(catalog.AuditEntry{Action: action, ProjectID: project, Object: domain, Changes: changes, Door: by.Door})
}

func (r *Resolver) noteEntry(e catalog.AuditEntry) {
	r.applying.Lock()
	defer r.applying.Unlock()
	st := r.stores.Writes()
	fillEntry(&e, st)
	r.applying.trail.Note(r.applying.trail.CatchUp(st, r.TrailLedger()), e)
}

// NoteAll appends entries that tell of no change of an object, and sets values as Records.SetNamed does, in one durable
// batch: all or nothing. Unlike with Note nothing waits: if the ledger refuses the batch, NoteAll returns why. It takes
// over the entries, and gives them their time, generation and, if their project exists, its slug.
func (r *Resolver) NoteAll(entries []catalog.AuditEntry, named map[string][]byte) error {
	r.applying.Lock()
	defer r.applying.Unlock()
	st := r.stores.Writes()
	for i := range entries {
		fillEntry(&entries[i], st)
	}
	return r.applying.trail.NoteAll(r.applying.trail.CatchUp(st, r.TrailLedger()), entries, ledger.AuditWith{Named: named})
}

// fillEntry gives an entry the generation of a store, and the slug of its project.
func fillEntry(e *catalog.AuditEntry, st *store.Store) {
	e.Generation = st.Generation()
	if e.ProjectID == 0 {
		return
	}
	if slug, err := st.Slug(e.ProjectID); err == nil && slug != "" { // a store that cannot be read is replaced
		e.Slug = slug
	}
}

// PruneAudit deletes the entries that are older than the auditRetentionDays of their project, and those of no project
// after ledger.DefaultAuditDays. It ends early with ctx.
func (r *Resolver) PruneAudit(ctx context.Context, now time.Time) error {
	var failed error
	err := r.PruneTrail(ctx, now, func(project int64) int {
		if project == 0 {
			return ledger.DefaultAuditDays
		}
		p, defaults, err := r.ProjectConfig(project)
		switch {
		case catalog.IsNotFound(err):
			return 0
		case err != nil:
			failed = err
			return -1
		case defaults != nil:
			return p.Service.Over(defaults.Service).AuditRetentionDays
		}
		return p.Service.AuditRetentionDays
	})
	return errors.Join(err, failed)
}
