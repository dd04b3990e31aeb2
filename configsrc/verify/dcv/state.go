package dcv

import (
	"net/netip"
	"time"
)

// A State is what is known of a subject after its checks so far. It is a value: Decide returns the next one. The zero
// State is that of a subject that was never checked.
type State struct {
	Ownership      string    // "": see Subject.Verified and Policy.Require
	OwnershipSince time.Time // zero: never decided
	Spreading      bool
	Misses         int       // definite ones since the last hit that count towards "lost"
	LastMiss       time.Time // of those that count
	// Wrote is what the service itself has written as Verified; "": nothing. Only that may it take back.
	Wrote string
	Seen  bool // the service has seen a proof since Verified has its value

	Pointing      string
	PointingSince time.Time
	Addresses     []netip.Addr

	Certificate      string
	CertificateSince time.Time
	Issuer           string
	ExpiresAt        time.Time

	Checks    int // since the state of ownership changed: the place in its timetable
	CheckedAt time.Time
	NextAt    time.Time
	Last      Facts // of the latest check
}

// A Decision is what a check leads to, outside of the State.
type Decision struct {
	// Write is the value that the files should have as verified; "": they stay.
	Write  string
	Reason string // of a proof that is lost, and of a change that the audit trail has: failing, lost, proven
	Noted  string // the state of ownership that the subject has come into, for the audit trail; "": none
}
