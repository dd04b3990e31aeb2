package catalog

import "time"

// The values of Verification.Require: which domains must be proven before they are answered.
const (
	RequireNone        = "none"
	RequireProjectKeys = "project-keys" // those that a project's key has added
	RequireAll         = "all"
)

// The values of Verification.OnLost: what happens when a proof stays gone.
const (
	OnLostReport = "report"
	OnLostBlock  = "block" // the domain is answered with 403
)

// The values of Domain.Verified that are no day.
const (
	VerifiedPending = "pending"
	VerifiedLost    = "lost"
)

// A Verification is the verification block of the defaults block: what a proof of a domain is for, and what follows if
// it goes away.
type Verification struct {
	_       struct{} `cbor:",toarray"`
	Require string
	// Targets are canonical host names, and addresses or prefixes (CIDR). A domain whose addresses are theirs points here.
	Targets []string
	OnLost  string
	Grace   time.Duration // how long a proof may be gone, at least 1 s
	CAs     []string      // host names of certification authorities, for the hint about CAA; nil: no hint
}
