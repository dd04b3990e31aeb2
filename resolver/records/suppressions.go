package records

import (
	"time"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/ledger"
)

// Suppressions returns what the suppression list of a project has of an address, the strongest reason first.
func (r *Records) Suppressions(project int64, address string) (list []catalog.Suppression, err error) {
	err = r.withLedger(func(l *ledger.Ledger) (err error) {
		list, err = l.Suppressions(project, address)
		return err
	})
	return list, err
}

// SuppressionCount returns the number of entries of a project's list.
func (r *Records) SuppressionCount(project int64) (n int64, err error) {
	err = r.withLedger(func(l *ledger.Ledger) (err error) {
		n, err = l.SuppressionCount(project)
		return err
	})
	return n, err
}

// SuppressionPage returns a page of a project's list, by address, and the number of entries on all pages; see
// ledger.Ledger for its cost.
func (r *Records) SuppressionPage(project int64, q catalog.SuppressionQuery) (page []catalog.Suppression, total int,
	err error) {
	err = r.withLedger(func(l *ledger.Ledger) (err error) {
		page, total, err = l.SuppressionPage(project, q)
		return err
	})
	return page, total, err
}

// ListedProjects returns the projects that have a suppression list.
func (r *Records) ListedProjects() (projects []int64, err error) {
	err = r.withLedger(func(l *ledger.Ledger) (err error) {
		projects, err = l.ListedProjects()
		return err
	})
	return projects, err
}

// KeepList notes whether the project of a list is there, and deletes the list of one that is gone for a grace period.
func (r *Records) KeepList(project int64, there bool, at time.Time, grace time.Duration) error {
	return r.withLedger(func(l *ledger.Ledger) error { return l.KeepList(project, there, at, grace) })
}

// MailLedger returns the ledger that mail may be stored in, and why none is.
func (r *Records) MailLedger() (*ledger.Ledger, error) { return r.ledgerInUse() }

// RefusalOf returns the error of the ledger as clients get it.
func RefusalOf(err error) error { return clientError(err) }
