package resolver

import (
	"context"
	"errors"
	"time"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/ledger"
)

// The results of AuditGaps and AuditHeads, for callers that do not import package ledger.
type (
	// An AuditGap is a place at which damage has cut the trail.
	AuditGap = ledger.AuditGap
	// An AuditChain is the chain of one project's entries.
	AuditChain = ledger.AuditChain
)

// auditLedger returns the ledger, nil while it takes no entries: the entries of a damaged one come before new ones.
func (r *Resolver) auditLedger() *ledger.Ledger {
	l := r.stores.Ledger()
	r.mail.mu.Lock()
	defer r.mail.mu.Unlock()
	if r.mail.recovering() && !r.mail.recovered {
		return nil
	}
	return l
}

// Auditable reports whether the audit trail takes entries: otherwise a write of a client is refused.
func (r *Resolver) Auditable() bool { return r.auditLedger() != nil }

// flushAudit gives a ledger that is back the entries that wait.
func (r *Resolver) flushAudit() {
	r.applying.Lock()
	defer r.applying.Unlock()
	r.applying.trail.CatchUp(r.stores.Writes(), r.auditLedger())
}

// Note appends an entry that tells of no change of an object, such as catalog.AuditConfirm. It is durable when Note
// returns. If the ledger refuses it, the entry waits in memory.
func (r *Resolver) Note(action string, by catalog.Author, changes ...catalog.FieldChange) {
	r.note(catalog.AuditEntry{Action: action, Changes: changes, Door: by.Door, Actor: by.Actor, Key: by.Key,
		RequestID: by.RequestID, Commit: by.Commit})
}

// NoteDomain is Note for what has happened to a project's domain without a change of its record.
func (r *Resolver) NoteDomain(action string, project int64, domain string, by catalog.Author,
	changes ...catalog.FieldChange) {
	r.note(catalog.AuditEntry{Action: action, ProjectID: project, Object: domain, Changes: changes, Door: by.Door})
}

func (r *Resolver) note(e catalog.AuditEntry) {
	r.applying.Lock()
	defer r.applying.Unlock()
	st := r.stores.Writes()
	e.Generation = st.Generation()
	r.applying.trail.Note(r.applying.trail.CatchUp(st, r.auditLedger()), e)
}

// Audit returns a page of the audit trail.
func (r *Resolver) Audit(q catalog.AuditQuery) (page catalog.AuditPage, err error) {
	err = r.withMailLog(func(l *ledger.Ledger) (err error) {
		page, err = l.Audit(q)
		return err
	})
	return page, err
}

// AuditHeads calls f with the chain of each project that has entries after an id, and returns the newest entry's id.
func (r *Resolver) AuditHeads(after int64, f func(c *AuditChain)) (last int64, err error) {
	err = r.withMailLog(func(l *ledger.Ledger) error {
		last = l.LastAudit()
		if last == after {
			return nil
		}
		return l.AuditChains(func(c *AuditChain) error {
			if c.Last > after {
				f(c)
			}
			return nil
		})
	})
	return last, err
}

// PruneAudit deletes the entries that are older than the auditRetentionDays of their project, and those of no project
// after ledger.DefaultAuditDays. It ends early with ctx.
func (r *Resolver) PruneAudit(ctx context.Context, now time.Time) error {
	l := r.auditLedger()
	if l == nil {
		return unavailable("the audit trail is not available at the moment")
	}
	var failed error
	err := l.PruneAudit(ctx, now, func(project int64) int {
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
	return errors.Join(mailError(err), failed)
}

// AuditGaps returns where damage has cut the trail, see ledger.AuditGap.
func (r *Resolver) AuditGaps() (gaps []AuditGap, err error) {
	err = r.withMailLog(func(l *ledger.Ledger) (err error) {
		gaps, err = l.AuditGaps()
		return err
	})
	return gaps, err
}

// VerifyAudit checks the chains of the trail, see ledger.Ledger.
func (r *Resolver) VerifyAudit(head [32]byte) (check ledger.AuditCheck, err error) {
	err = r.withMailLog(func(l *ledger.Ledger) (err error) {
		check, err = l.VerifyAudit(head)
		return err
	})
	return check, err
}
