package dcv

import (
	"net/netip"
	"time"

	"fingerpost/resolver/catalog"
)

// A Scope is what a record proves, and part of its token.
type Scope string

// The scopes.
const (
	ScopeExact    Scope = "exact"    // the name
	ScopeWildcard Scope = "wildcard" // all names below the name: of a domain "*.name"
	ScopeDomain   Scope = "domain"   // the name and all names below it
)

// A Subject is a domain that is checked.
type Subject struct {
	Project  catalog.UUID `json:",omitzero"`
	Name     string       // canonical, with "*." for a wildcard
	Verified string       // as the files have it: "", catalog.VerifiedPending, catalog.VerifiedLost or a day
	// Reused: the project came with the uuid of another one that was removed, whose records prove this one's domains.
	Reused bool `json:",omitempty"`
}

// A Way is one way to prove a subject: a record of which one is enough.
type Way struct {
	Scope Scope
	Type  string // "TXT" or "CNAME"
	Name  string // of the record, canonical, without a trailing dot
	Token string
	// Target is where a CNAME leads, the token's label included: "<token>.<target>". "" for a TXT record.
	Target string
}

// Errors of an Answer that Show knows. Others may be any short text.
const (
	TimedOut = "time-out"
	ServFail = "SERVFAIL"
	Refused  = "REFUSED"
	Lame     = "lame" // the server answers, and is not responsible for the zone
)

// An Answer is what one server says about one record.
type Answer struct {
	Server string // host name of the server
	// Values are the values of the records: the joined strings of a TXT record, the target of a CNAME, an address. None, if
	// Error is "", stands for NXDOMAIN or NODATA.
	Values []string `json:",omitempty"`
	Error  string   `json:",omitempty"` // why the answer is not definite, such as TimedOut; "": it is definite
	At     time.Time
}

// Definite reports whether the answer says anything about the record.
func (a *Answer) Definite() bool { return a.Error == "" }

// A Finding is what all authoritative servers of a record's zone say about it.
type Finding struct {
	Type    string // "TXT", "CNAME", "A" or "AAAA"
	Name    string
	Answers []Answer `json:",omitempty"` // one for each server, in a fixed order
	// Error says why the servers of the zone were not found; then nothing is definite.
	Error string `json:",omitempty"`
}

// Facts are what one check of a subject has found, without a judgement. The checker fills them in; a field that was not
// asked for is zero.
type Facts struct {
	At time.Time // when the check began
	// Proofs has one finding for each distinct type and name of Ways. A way without a finding was not asked for, and then
	// nothing is a miss. A trusted subject (see NeedsProof) has none.
	Proofs   []Finding `json:",omitempty"`
	Pointing Pointing  `json:",omitzero"`
	TLS      TLS       `json:",omitzero"`
	Zone     Zone      `json:",omitzero"`
	// Limited: the check has used up its time or its questions. It is about the check, and not kept with the state.
	Limited bool `json:"-"`
}

// A Stray is TXT values at a name that is none of the ways'.
type Stray struct {
	Name   string
	Values []string `json:",omitempty"`
}

// Pointing is where the name leads.
type Pointing struct {
	Name string // that was asked for, see PointingName
	// Findings are those of A and AAAA at the end of the chain of CNAMEs, one each, and of the CNAMEs on the way to it.
	Findings []Finding `json:",omitempty"`
	Loop     bool      `json:",omitempty"` // the chain is a loop, or longer than 8: its end is not known
	// Addresses are those of all definite answers, sorted, each once.
	Addresses []netip.Addr `json:",omitempty"`
	// TargetAddresses are those that the host names of Policy.Targets have now.
	TargetAddresses []netip.Addr `json:",omitempty"`
	TargetError     string       `json:",omitempty"` // why the addresses of a target are not known
}

// TLS is what an address that is a target's says to a TLS client that wants the name.
type TLS struct {
	Tried     []netip.Addr `json:",omitempty"` // one of each family; none: no address is here
	Connected bool         `json:",omitempty"` // a certificate came
	Refused   bool         `json:",omitempty"` // the port is closed, or does not speak TLS
	Error     string       `json:",omitempty"` // of the connection or of the verification; "": the certificate is good
	Issuer    string       `json:",omitempty"`
	NotAfter  time.Time    `json:",omitzero"` // zero: no certificate came
}

// Zone is what else the hints need to know.
type Zone struct {
	Apex        string   `json:",omitempty"` // of the zone that has the name
	NameServers []string `json:",omitempty"` // host names of its authoritative servers
	ApexCNAME   bool     `json:",omitempty"` // the name is the apex, and a CNAME stands there or is refused there
	// CAA are the values of the records "issue" in force for the name (for a name below a wildcard: of that name). None, if
	// CAAKnown: every authority may issue.
	CAA      []string `json:",omitempty"`
	CAAName  string   `json:",omitempty"` // where they stand; "": nowhere
	CAAKnown bool     `json:",omitempty"`
	// Doubled has the values at the first way's name with the zone's name appended once more.
	Doubled []string `json:",omitempty"`
	// Strays has the values at other names that people give the record by mistake, see StrayNames.
	Strays []Stray `json:",omitempty"`
	// Resolver is what the configured resolver says about the first way's record.
	Resolver      Answer    `json:",omitzero"`
	NegativeUntil time.Time `json:",omitzero"` // until when the resolver has its "no" cached; zero: it has none
	// BrokenDNSSEC: the resolver answers SERVFAIL, and answers a question with CD.
	BrokenDNSSEC bool `json:",omitempty"`
}
