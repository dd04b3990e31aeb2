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
	Project  catalog.UUID
	Name     string // canonical, with "*." for a wildcard
	Verified string // as the files have it: "", catalog.VerifiedPending, catalog.VerifiedLost or a day
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

// An Answer is what one server says about one record.
type Answer struct {
	Server string // host name of the server
	// Values are the values of the records: the joined strings of a TXT record, the target of a CNAME, an address. None, if
	// Error is "", stands for NXDOMAIN or NODATA.
	Values []string
	Error  string // why the answer is not definite: "time-out", "SERVFAIL", "REFUSED", "lame", …; "": it is definite
	At     time.Time
}

// Definite reports whether the answer says anything about the record.
func (a *Answer) Definite() bool { return a.Error == "" }

// A Finding is what all authoritative servers of a record's zone say about it.
type Finding struct {
	Type    string // "TXT", "CNAME", "A" or "AAAA"
	Name    string
	Answers []Answer // one for each server, in a fixed order
	// Error says why the servers of the zone were not found, or why a chain of CNAMEs has no end; then nothing is definite.
	Error string
}

// Facts are what one check of a subject has found, without a judgement. The checker fills them in; a field that was not
// asked for is zero.
type Facts struct {
	At       time.Time
	Proofs   []Finding // in the order of Ways
	Pointing Pointing
	TLS      TLS
	Zone     Zone
}

// Pointing is where the name leads.
type Pointing struct {
	Name     string    // that was asked for: of a wildcard a name below it
	Findings []Finding // A and AAAA of the end of the chain, and the CNAMEs on the way to it
	// Addresses are those of all definite answers, sorted, each once.
	Addresses []netip.Addr
	// TargetAddresses are those that the host names of Policy.Targets have now.
	TargetAddresses []netip.Addr
	TargetError     string // why the addresses of a target are not known
}

// TLS is what an address that is a target's says to a TLS client that wants the name.
type TLS struct {
	Tried     []netip.Addr // one of each family; none: no address is here
	Connected bool         // a certificate came
	Refused   bool         // the port is closed, or does not speak TLS
	Error     string       // of the connection or of the verification; "": the certificate is good
	Issuer    string
	NotAfter  time.Time // zero: no certificate came
}

// Zone is what else the hints need to know.
type Zone struct {
	Apex        string   // of the zone that has the name
	NameServers []string // host names of its authoritative servers
	ApexCNAME   bool     // the name is the apex, and a CNAME stands there or is refused there
	CAA         []string // values of "issue" records in force for the name; nil: none, every authority may issue
	CAAKnown    bool
	// Doubled has the values at the proof's name with the zone's name appended once more.
	Doubled []string
	// Resolver is what the configured resolver says about the first way's record.
	Resolver      Answer
	NegativeUntil time.Time // until when the resolver has its "no" cached; zero: it has none
	BrokenDNSSEC  bool      // the resolver answers SERVFAIL, and answers a question with CD
}
