package verify

import (
	"context"
	"errors"

	"fingerpost/configsrc/verify/dcv"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/records"
)

// A Domain is a domain as it is served.
type Domain struct {
	dcv.Subject
	ID        int64
	ProjectID int64
	Slug      string // of the project; "" from Domains.Each
}

// Domains is what the files declare; Live is one.
type Domains interface {
	// Each yields all domains until yield returns false.
	Each(yield func(d Domain) bool) error
	// Named returns the domain of a name; false: no file declares it.
	Named(name string) (d Domain, found bool, err error)
	// Reused reports whether a project came with the uuid of another one that was removed.
	Reused(project catalog.UUID) (bool, error)
	// Policy returns the verification block; false: the files have none.
	Policy() (p dcv.Policy, on bool)
}

// Changes tells which domains may have changed since it was made; Feed is one. One goroutine uses it.
type Changes interface {
	// Changed returns a channel that is closed when there is more for Next. Get it first, then call Next, then wait.
	Changed() <-chan struct{}
	// Next returns some names of domains that may have changed; all: any domain, or the block, may have. Neither: there is
	// nothing left.
	Next() (names []string, all bool)
}

// A Ledger keeps the notes of domains; *resolver.Resolver is one.
type Ledger interface {
	ChangeDomainNotes(notes []records.DomainNote) error
	DomainNote(project catalog.UUID, domain string) (note []byte, found bool, err error)
	EachDomainNote(f func(n records.DomainNote) error) error
}

// A Trail gets what no write tells; *resolver.Resolver is one.
type Trail interface {
	NoteDomain(action string, project int64, domain string, by catalog.Author, changes ...catalog.FieldChange)
}

// A Checker finds out the facts. A server that does not answer is a fact; an error means that there are none, because
// ctx has ended.
type Checker interface {
	Check(ctx context.Context, s dcv.Subject, p dcv.Policy, ways []dcv.Way) (dcv.Facts, error)
}

// A Writer changes the files.
type Writer interface {
	// SetVerified gives a domain the value of verified, if it still has d.Verified, and else returns ErrOvertaken. After
	// any error the file is as it was.
	SetVerified(ctx context.Context, d Domain, value, reason string) error
}

// ErrOvertaken is a Writer's error when the file has another value by now, or does not have the domain.
var ErrOvertaken = errors.New("the file has changed meanwhile")
