package records

import (
	"context"
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

// Audit returns a page of the audit trail.
func (r *Records) Audit(q catalog.AuditQuery) (page catalog.AuditPage, err error) {
	err = r.withLog(func(l *ledger.Ledger) (err error) {
		page, err = l.Audit(q)
		return err
	})
	return page, err
}

// AuditHeads calls f with the chain of each project that has entries after an id, and returns the newest entry's id.
func (r *Records) AuditHeads(after int64, f func(c *AuditChain)) (last int64, err error) {
	err = r.withLog(func(l *ledger.Ledger) error {
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

// AuditGaps returns where damage has cut the trail, see ledger.AuditGap.
func (r *Records) AuditGaps() (gaps []AuditGap, err error) {
	err = r.withLog(func(l *ledger.Ledger) (err error) {
		gaps, err = l.AuditGaps()
		return err
	})
	return gaps, err
}

// VerifyAudit checks the chains of the trail, see ledger.Ledger.
func (r *Records) VerifyAudit(head [32]byte) (check ledger.AuditCheck, err error) {
	err = r.withLog(func(l *ledger.Ledger) (err error) {
		check, err = l.VerifyAudit(head)
		return err
	})
	return check, err
}

// PruneTrail deletes the old entries of the audit trail; days is that of ledger.Ledger.PruneAudit. It ends early with ctx.
func (r *Records) PruneTrail(ctx context.Context, now time.Time, days func(project int64) int) error {
	l := r.TrailLedger()
	if l == nil {
		return catalog.Unavailable("the audit trail is not available at the moment")
	}
	return clientError(l.PruneAudit(ctx, now, days))
}
