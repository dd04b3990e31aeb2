package resolver

import (
	"context"
	"errors"
	"time"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/ledger"
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
		Key: by.Key, RequestID: by.RequestID, Commit: by.Commit})
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
	e.Generation = st.Generation()
	if e.ProjectID != 0 {
		e.Slug, _ = st.Slug(e.ProjectID) // a store that cannot be read is replaced; the entry matters more
	}
	r.applying.trail.Note(r.applying.trail.CatchUp(st, r.TrailLedger()), e)
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
