package dcv

import (
	"net/netip"
	"time"
)

// The states of ownership.
const (
	Trusted = "trusted" // a person wrote the domain, and no proof is required
	Pending = "pending" // never proven; not answered
	Proven  = "proven"
	Failing = "failing" // proven, and the proof is gone; still answered
	Lost    = "lost"    // gone for longer than the grace; not answered if the files have it so
)

// The states of pointing.
const (
	Here      = "here"      // all addresses are the targets'
	Elsewhere = "elsewhere" // an address is not
	Nowhere   = "nowhere"   // the name has no address
	Spreading = "spreading" // servers disagree
)

// The states of the certificate.
const (
	Good          = "good"
	Expiring      = "expiring" // within 14 days
	Wrong         = "wrong"    // another name, an unknown issuer, expired
	NoCertificate = "none"     // refused, or no TLS
)

// Unknown is a state of pointing and of the certificate: never found out, or it has no meaning.
const Unknown = "unknown"

// A State is what is known of a subject after its checks so far. It is a value: Decide returns the next one. The zero
// State is that of a subject that was never checked.
type State struct {
	// Subject is whose state it is, with Verified as the files had it when the state was decided. A state of another
	// project or name counts for nothing.
	Subject     Subject
	Ownership   OwnershipState
	Pointing    PointingState    `json:",omitzero"`
	Certificate CertificateState `json:",omitzero"`
	Checks      int              `json:",omitempty"` // since the state of ownership changed: the place in its timetable
	CheckedAt   time.Time        `json:",omitzero"`  // when the latest check began
	NextAt      time.Time        `json:",omitzero"`
	Last        Facts            `json:",omitzero"` // of the latest check, cut to a bounded size
}

// ready reports whether the subject is answered, leads here and has a good certificate.
func (st *State) ready() bool {
	return (st.Ownership.State == Trusted || st.Ownership.State == Proven) && st.Pointing.State == Here &&
		st.Certificate.State == Good
}

// An OwnershipState is whose the domain is, and what the service remembers of its own part in that.
type OwnershipState struct {
	State     string
	Since     time.Time
	Spreading bool      `json:",omitempty"` // the servers disagree about the proof
	Misses    int       `json:",omitempty"` // definite ones since the last hit, each long enough after the one before
	LastMiss  time.Time `json:",omitzero"`  // of those that count
	// Writing is what the latest Decision wants to have written, until Settle or Follow have seen how it ended.
	Writing string `json:",omitempty"`
	// Wrote is the present Verified, if the service wrote it. Only that may it take back.
	Wrote string `json:",omitempty"`
	Seen  bool   `json:",omitempty"` // the service has seen a proof since Verified has its value
	// Missed, of a Reused subject: a check has found that no record of the former project is left. Before that, a proof may
	// be one.
	Missed bool `json:",omitempty"`
}

// A PointingState is where the domain leads.
type PointingState struct {
	State     string // "": unknown
	Since     time.Time
	Addresses []netip.Addr `json:",omitempty"`
}

// A CertificateState is the state of the domain's certificate.
type CertificateState struct {
	State     string // "": unknown
	Since     time.Time
	Issuer    string    `json:",omitempty"`
	ExpiresAt time.Time `json:",omitzero"`
}

// A Decision is what a check leads to, outside of the State.
type Decision struct {
	// Write is the value that the files should have as verified, if they still have From; "": they stay. Save the state
	// before the write, and call Settle after it.
	Write string
	From  string
	// Noted is the state of ownership that the subject has come into without a write, for the audit trail; "": none.
	Noted  string
	Reason string // of the write or of what is noted, in words
}
