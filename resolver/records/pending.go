package records

import (
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/ledger"
)

// ChangePending stores and deletes records of API writes that wait for git, see ledger.Ledger; UNAVAILABLE while the
// ledger cannot be used.
func (r *Records) ChangePending(put map[int64][]byte, drop ...int64) error {
	return r.withLedger(func(l *ledger.Ledger) error { return l.ChangePending(put, drop...) })
}

// Committed stores the commits of API writes for the audit trail, and deletes their records of ChangePending.
func (r *Records) Committed(writes []catalog.WriteCommit, drop ...int64) error {
	return r.withLedger(func(l *ledger.Ledger) error { return l.Committed(writes, drop...) })
}

// MoveCommits records rewritten commits in the audit trail: moved[old] is the new one.
func (r *Records) MoveCommits(moved map[string]string) error {
	return r.withLedger(func(l *ledger.Ledger) error { return l.MoveCommits(moved) })
}

// PendingWrites returns the records of the API writes that wait for git, by id.
func (r *Records) PendingWrites() (all map[int64][]byte, err error) {
	err = r.withLedger(func(l *ledger.Ledger) (err error) {
		all, err = l.Pending()
		return err
	})
	return all, err
}

// ChangeProposals stores and deletes records of open proposals, by name, see ledger.Ledger; UNAVAILABLE while the
// ledger
// cannot be used.
func (r *Records) ChangeProposals(put map[string][]byte, drop ...string) error {
	return r.withLedger(func(l *ledger.Ledger) error { return l.ChangeProposals(put, drop...) })
}

// ProposalRecords returns the records of ChangeProposals, by name.
func (r *Records) ProposalRecords() (all map[string][]byte, err error) {
	err = r.withLedger(func(l *ledger.Ledger) (err error) {
		all, err = l.Proposals()
		return err
	})
	return all, err
}
