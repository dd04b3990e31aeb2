package resolver

import (
	"errors"
	"fmt"
	"io"
	"time"

	"fingerpost/resolver/archive"
	"fingerpost/resolver/store"
)

// What a backup is and what can be wrong with one, in the words of the room that keeps it.
type (
	// A Manifest says what is in a backup.
	Manifest = archive.Manifest
	// RestoreOptions say what a Restore may do.
	RestoreOptions = archive.RestoreOptions
	// A Restored says what a Restore did.
	Restored = archive.Restored
)

// Test with errors.Is.
var (
	ErrArchive    = archive.ErrArchive    // what was given is no sound backup
	ErrInTheWay   = archive.ErrInTheWay   // the data directory holds something
	ErrBackupRuns = archive.ErrBackupRuns // one at a time
)

// Backup writes an archive of the store as it is at one moment, while everything goes on; see archive.Source. It refuses as
// long as a store in memory stands in for the one on disk: that has nothing but what the files say.
func (r *Resolver) Backup(w io.Writer) error {
	if reason, bad := r.Degraded(); bad {
		return fmt.Errorf("back up the store: %w: %s", store.ErrUnavailable, reason)
	}
	st, l := r.writes.Load(), r.mail.ledger.Load()
	if l == nil {
		return fmt.Errorf("back up the store: %w: the ledger is not in use", store.ErrUnavailable)
	}
	return r.backups.Backup(w, st, l, r.options.Now())
}

// BackupDir writes an archive of the store in dir, which nobody has open.
func BackupDir(w io.Writer, dir string) error { return archive.BackupDir(w, dir, time.Now()) }

// CheckArchive reads a backup to its end and checks every byte of it.
func CheckArchive(in io.Reader) (*Manifest, error) { return archive.Check(in) }

// Restore makes the store in dir out of a backup, or leaves dir as it is.
func Restore(dir string, in io.Reader, o RestoreOptions) (*Restored, error) {
	o.Now = time.Now()
	return archive.Restore(dir, in, o)
}

// HeldBy tells which process has the store open that err is about, where err says that one has; pid is 0 where that is
// not known.
func HeldBy(err error) (pid int, held bool) {
	var locked *store.LockedError
	if errors.As(err, &locked) {
		return locked.PID, true
	}
	return 0, false
}
