// Package datadir works on a data directory: it makes and restores backups of the store and the ledger in it, and reads
// both while no server runs.
//
// What it promises. A backup is one gzipped tar with a manifest (the formats, the generation, every file's size and
// SHA-256), then the files of a checkpoint of the store, and of one of the ledger. It holds the content of both: the config
// files' bytes, so sealed values, key hashes, and secrets written in clear text; the two times of every object; the mail
// log, the queue and the idempotency keys.
//
// Restore trusts nothing: it accepts only names that Pebble gives, only sizes and hashes that the manifest has, and
// nothing before, between or behind. Formats that are too new are refused by the manifest alone. The restored store is
// built next to its place, opened, read through, and exchanged with the present data directory, which is kept; until then
// the directory is as it was. The mails of a restored queue may have been sent since the backup was made, so each is marked
// as uncertain.
//
// What is only read stays as it is, byte for byte, except for the pid in the lock files. While one of these calls has the
// directory, no server starts on it; while a server runs on it, every call is refused, and HeldBy tells the pid. A damaged
// store is not moved aside.
//
// What it needs. The path of the directory; a running server's backup needs a Source, its open store and ledger.
//
// What it does not do. It knows nothing of a running server, which package resolver asks for the same facts, and nothing
// of the config files. It does not bring an older format up to date.
package datadir

import (
	"errors"

	"fingerpost/resolver/store"
)

// ErrNoStore says that the folder has no store. Test with errors.Is.
var ErrNoStore = store.ErrNoStore

// HeldBy reports whether err says that another process has the store open, and which; pid is 0 if unknown.
func HeldBy(err error) (pid int, held bool) {
	var locked *store.LockedError
	if errors.As(err, &locked) {
		return locked.PID, true
	}
	return 0, false
}
