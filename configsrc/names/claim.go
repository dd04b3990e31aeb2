package names

import (
	"strings"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/hostname"
)

// Declared looks up declared domains; *resolver.Resolver implements it. A missing one is a NOT_FOUND *catalog.Error.
type Declared interface {
	// DomainNamed returns the record of a canonical name or wildcard.
	DomainNamed(name string) (*catalog.Domain, error)
	// DomainsBelow yields the records below a suffix, except *.suffix itself, until yield returns false; all are below
	// "". A wildcard comes before the names below it, which follow it. The record is valid within the call.
	DomainsBelow(suffix string, yield func(*catalog.Domain) bool) error
	ProjectByID(id int64) (*catalog.Project, error)
	Notes
}

// MayClaim reports whether a key that is limited to projects may declare name in the project (api/README.md, Keys):
// nil, or DOMAIN_NOT_ALLOWED. A name that is already declared passes: the write itself detects that conflict. A pending
// record that such a key made does not count: a claim that was never proven keeps nobody out.
func MayClaim(names Declared, covers catalog.Coverage, project int64, name string) error {
	if covers == nil {
		return nil
	}
	switch _, err := names.DomainNamed(name); {
	case err == nil:
		return nil
	case !catalog.IsNotFound(err):
		return err
	}
	if public, _ := hostname.PublicSuffix(name); public {
		return domainNotAllowed("is a public suffix, a single label, or a wildcard directly below one: only a key for " +
			"every project may declare it")
	}
	foreign := func(d *catalog.Domain) (bool, error) {
		if d.ProjectID == project || covers(d.ProjectID) {
			return false, nil
		}
		free, err := Unproven(names, d)
		return !free, err
	}
	below := func(upper, what string) error {
		d, err := names.DomainNamed(upper)
		if catalog.IsNotFound(err) {
			return nil
		}
		refused := false
		if err == nil {
			refused, err = foreign(d)
		}
		if refused {
			return domainNotAllowed("lies below a " + what + " that this key does not reach")
		}
		return err
	}
	for wildcard := range Above(name) {
		if err := below(wildcard, "wildcard"); err != nil {
			return err
		}
		if err := below(strings.TrimPrefix(wildcard, "*."), "name"); err != nil {
			return err
		}
	}
	suffix, wildcard := strings.CutPrefix(name, "*.")
	if !wildcard {
		return nil
	}
	err := below(suffix, "name") // all names that the wildcard covers do
	if err != nil {
		return err
	}
	var refused error
	err = names.DomainsBelow(suffix, func(d *catalog.Domain) bool {
		above, err := foreign(d)
		if refused = err; above {
			refused = domainNotAllowed("is a wildcard above a name that this key does not reach")
		}
		return refused == nil
	})
	if refused != nil {
		return refused
	}
	return err
}

func domainNotAllowed(why string) error {
	e := &catalog.Error{Code: catalog.CodeDomainNotAllowed, Message: "this key may not declare this domain"}
	e.Problems.Addf("domain", "%s", why)
	return e
}

// Above yields the wildcards that cover a name or wildcard, the longest first.
func Above(name string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		rest := strings.TrimPrefix(name, "*.")
		for {
			_, suffix, more := strings.Cut(rest, ".")
			if !more || !yield("*."+suffix) {
				return
			}
			rest = suffix
		}
	}
}
