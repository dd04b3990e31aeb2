package resolver

import (
	"fmt"
	"io"

	"fingerpost/resolver/datadir"
	"fingerpost/resolver/ledger"
	"fingerpost/resolver/store"
)

// The versions of the layouts on disk, see packages store and ledger.
const (
	StoreFormat  = store.Format
	LedgerFormat = ledger.Format
)

// ErrBackupRuns is the error of a second backup at the same time. Test with errors.Is.
var ErrBackupRuns = datadir.ErrBackupRuns

// Backup writes an archive of the store as of one moment; reads and writes continue, see archive.Source. It refuses
// while a store in memory replaces the one on disk, because that holds only what the files declare.
func (r *Resolver) Backup(w io.Writer) error {
	if reason, bad := r.Degraded(); bad {
		return fmt.Errorf("back up the store: %w: %s", store.ErrUnavailable, reason)
	}
	st, l := r.stores.Writes(), r.stores.Ledger()
	if l == nil {
		return fmt.Errorf("back up the store: %w: the ledger is not in use", store.ErrUnavailable)
	}
	return r.backups.Backup(w, st, l, r.options.Now())
}
