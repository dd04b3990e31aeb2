package store

import "fingerpost/resolver/pebblefs"

// What Open, Apply, the reads and Err report; test with errors.Is.
var (
	ErrLocked      = pebblefs.ErrLocked
	ErrUnavailable = pebblefs.ErrUnavailable
	ErrDamaged     = pebblefs.ErrDamaged
	ErrNewer       = pebblefs.ErrNewer
	ErrOlder       = pebblefs.ErrOlder
	ErrNoStore     = pebblefs.ErrNoStore
	ErrClosed      = pebblefs.ErrClosed
)

// A LockedError says who has the data directory. It is an ErrLocked.
type LockedError = pebblefs.LockedError

// Probe and MoveAside are what a caller may do with a directory on which no Store is open. MoveAside leaves the ledger.
var (
	Probe     = pebblefs.Probe
	MoveAside = pebblefs.MoveFilesAside
)

// Final reports whether an error of Open says that another process or another release has the directory.
var Final = pebblefs.Final

// ownFiles are the names in a store's directory that are not Pebble's: the ledger, the ledger's files next to
// Pebble's, and the proof of the ops listener. A data folder that a restore has moved aside holds all of them.
var ownFiles = []string{"ledger", "mail-witness", "mail-salvage", "ops.proof"}
