package resolver

import (
	"errors"
	"fmt"
	"io"
	"time"

	"fingerpost/resolver/archive"
	"fingerpost/resolver/ledger"
	"fingerpost/resolver/store"
)

// The types of package archive, for callers that do not import it.
type (
	// A Manifest describes a backup.
	Manifest = archive.Manifest
	// RestoreOptions limit what a Restore may do.
	RestoreOptions = archive.RestoreOptions
	// A Restored reports what a Restore did.
	Restored = archive.Restored
)

// The versions of the layouts on disk, see packages store and ledger.
const (
	StoreFormat  = store.Format
	LedgerFormat = ledger.Format
)

// Test with errors.Is.
var (
	ErrArchive    = archive.ErrArchive    // the input is no valid backup
	ErrInTheWay   = archive.ErrInTheWay   // the data directory is not empty
	ErrBackupRuns = archive.ErrBackupRuns // one at a time
)

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

// BackupDir writes an archive of the store in dir, which no process may have open.
func BackupDir(w io.Writer, dir string) error { return archive.BackupDir(w, dir, time.Now()) }

// CheckArchive reads a whole backup and verifies every byte.
func CheckArchive(in io.Reader) (*Manifest, error) { return archive.Check(in) }

// Restore creates the store in dir from a backup, or leaves dir unchanged.
func Restore(dir string, in io.Reader, o RestoreOptions) (*Restored, error) {
	o.Now = time.Now()
	return archive.Restore(dir, in, o)
}

// HeldBy reports whether err says that another process has the store open, and which; pid is 0 if unknown.
func HeldBy(err error) (pid int, held bool) {
	var locked *store.LockedError
	if errors.As(err, &locked) {
		return locked.PID, true
	}
	return 0, false
}
