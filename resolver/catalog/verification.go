package catalog

import (
	"errors"
	"net/netip"
	"strings"
	"time"

	"fingerpost/resolver/hostname"
)

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

// NewVerification returns the values of an empty block.
func NewVerification() Verification {
	return Verification{Require: RequireNone, OnLost: OnLostReport, Grace: 72 * time.Hour}
}

// AllFields lists the fields of the block.
func (v *Verification) AllFields() []Field {
	grace := v.Grace.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(grace, zero) {
			grace = grace[:len(grace)-2]
		}
	}
	return []Field{
		{Name: "require", Value: &v.Require, OneOf: []string{RequireNone, RequireProjectKeys, RequireAll},
			Label: "Domains that must be proven"},
		{Name: "targets", Value: v.Targets, Label: "Where domains must point"},
		{Name: "onLost", Value: &v.OnLost, OneOf: []string{OnLostReport, OnLostBlock}, Label: "When a proof is lost"},
		{Name: "grace", Value: &grace, Label: "How long a proof may be gone"},
		{Name: "cas", Value: v.CAs, Label: "Certification authorities"},
	}
}

// CheckVerified returns what is wrong with a value of Domain.Verified, "" if nothing is. today is the day in UTC, as
// "2006-01-02": a later day is wrong. With today "" every day is right, for values that another node has accepted, whose
// clock may be ahead.
func CheckVerified(verified, today string) string {
	switch _, err := time.Parse(time.DateOnly, verified); {
	case verified == VerifiedPending, verified == VerifiedLost:
	case err != nil:
		return `must be "pending", "lost" or the day of the proof, such as "2026-11-24"`
	case today != "" && verified > today:
		return "the day is in the future: today is " + today + " (UTC)"
	}
	return ""
}

// ParseTarget returns the canonical form of a target: a host name, an address, or a prefix without bits behind its
// length. An error completes the sentence "the target …".
func ParseTarget(s string) (string, error) {
	const advice = `: it must be a host name, an address, or a prefix such as "203.0.113.0/24"`
	if prefix, err := netip.ParsePrefix(s); err == nil {
		if prefix.Addr().Is4In6() {
			return "", errors.New("is an IPv4 prefix in the form of IPv6: write it as IPv4")
		}
		return prefix.Masked().String(), nil
	}
	if addr, err := netip.ParseAddr(s); err == nil {
		if addr.Zone() != "" {
			return "", errors.New("has a zone, which only this machine knows" + advice)
		}
		return addr.Unmap().String(), nil
	}
	name, err := hostname.Parse(s)
	if err != nil {
		return "", errors.New(err.Error() + advice)
	}
	return name, nil
}

// NotVerified says why a domain is answered with DOMAIN_NOT_VERIFIED. The zero value says that it is not.
type NotVerified uint8

// The reasons.
const (
	DomainInactive NotVerified = iota + 1
	DomainPending
	DomainLost
	DomainUnproven // it has no proof, and Verification.Require is RequireAll
)

var notVerified = [...]struct {
	why string
	err *Error
}{
	DomainInactive: {"it has active = false",
		&Error{Code: CodeDomainNotVerified, Message: "the domain is declared but not active"}},
	DomainPending: {`it has verified = "pending"`, &Error{Code: CodeDomainNotVerified,
		Message: `the domain is not verified yet: it has verified = "pending"`}},
	DomainLost: {`it has verified = "lost"`, &Error{Code: CodeDomainNotVerified,
		Message: `the domain is not verified any more: it has verified = "lost"`}},
	DomainUnproven: {`it has no verified, and the defaults have require = "all"`, &Error{Code: CodeDomainNotVerified,
		Message: `the domain is not verified yet: it has no verified, and the defaults have require = "all"`}},
}

// Why completes the sentence "the domain matches, but …".
func (n NotVerified) Why() string { return notVerified[n].why }

// Refusal returns the error for a client, which is shared; nil for the zero value.
func (n NotVerified) Refusal() *Error { return notVerified[n].err }

// NotVerified returns why the domain is answered with DOMAIN_NOT_VERIFIED. defaults may be nil.
func (d *Domain) NotVerified(defaults *Defaults) NotVerified {
	switch {
	case !d.Active:
		return DomainInactive
	case d.Verified == nil:
		if defaults != nil && defaults.Verification != nil && defaults.Verification.Require == RequireAll {
			return DomainUnproven
		}
	case *d.Verified == VerifiedPending:
		return DomainPending
	case *d.Verified == VerifiedLost:
		return DomainLost
	}
	return 0
}

// Requires reports whether domains that the keys of projects add must be proven. d may be nil.
func (d *Defaults) Requires() bool {
	return d != nil && d.Verification != nil && d.Verification.Require != RequireNone
}
