// Package datadir works on the data directory of a server that does not run: it reads the store and the ledger in it
// without a change, and makes and restores backups.
//
// What it promises. What is only read stays as it is, byte for byte, except for the pid in the lock files. While one of
// these calls has the directory, no server starts on it; while a server runs on it, every call is refused, and HeldBy
// tells the pid. A damaged store is not moved aside. Restore leaves the directory unchanged unless it succeeds.
//
// What it needs. The path of the directory; packages store, ledger and archive do the work.
//
// What it does not do. It knows nothing of a running server, which package resolver asks for the same facts, and nothing
// of the config files. It does not bring an older format up to date.
package datadir

import (
	"errors"
	"io"
	"time"

	"fingerpost/resolver/archive"
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

// Test with errors.Is.
var (
	ErrNoStore  = store.ErrNoStore    // the folder has no store
	ErrArchive  = archive.ErrArchive  // the input is no valid backup
	ErrInTheWay = archive.ErrInTheWay // the data directory is not empty
)

// Backup writes an archive of the store in dir, which no process may have open.
func Backup(w io.Writer, dir string) error { return archive.BackupDir(w, dir, time.Now()) }

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
