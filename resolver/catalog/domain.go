package catalog

import (
	"strings"
	"time"
)

// A Domain is a host name, or a wildcard for all names below one, that belongs to one project.
type Domain struct {
	_         struct{} `cbor:",toarray"`
	ID        int64
	UUID      UUID `cbor:"-"`
	ProjectID int64
	Name      string // canonical, see ParseDomain; the API's field "domain"
	Primary   bool
	Active    bool // see NotVerified
	// Certificates says whether gateways may fetch certificates for names that the record covers. Nil: see
	// MayHaveCertificates.
	Certificates *bool
	// Verified is VerifiedPending, VerifiedLost, or the day (UTC) of the proof. Nil: nobody has asked for a proof, see
	// NotVerified.
	Verified  *string
	CreatedAt time.Time `cbor:"-"`
	UpdatedAt time.Time `cbor:"-"`
}

// Fields lists the attributes of the block. The name is its label.
func (d *Domain) Fields() []Field {
	return []Field{
		{Name: "primary", Value: &d.Primary, Label: "Primary",
			Help: "The project's main address; another one stops being it."},
		{Name: "active", Value: &d.Active, Label: "Active",
			Help: "Requests for an inactive domain are answered with 403."},
		{Name: "certificates", Value: &d.Certificates, Own: true, Label: "Certificates",
			Help:  "Whether gateways may fetch certificates for the names that it covers.",
			Unset: "not said: yes for a name, no for a wildcard"},
		{Name: "verified", Value: &d.Verified, Own: true, Label: "Verified",
			Help:  "pending, lost, or the day of the proof. While it is pending or lost, requests are answered with 403.",
			Unset: "not said: trusted, unless the defaults require a proof of all"},
	}
}

// Wildcard reports whether d stands for all names below Name[2:].
func (d *Domain) Wildcard() bool { return strings.HasPrefix(d.Name, "*.") }

// MayHaveCertificates reports whether gateways may fetch certificates for names that the record covers. If the files do
// not say it, they may for an exact name and may not for a wildcard: anybody can point a name below it at the gateway.
func (d *Domain) MayHaveCertificates() bool {
	if d.Certificates != nil {
		return *d.Certificates
	}
	return !d.Wildcard()
}
