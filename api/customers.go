package api

import (
	"context"
	"time"

	"fingerpost/api/platform"
	"fingerpost/configsrc/verify/dcv"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// customers are what the console shows by a customer's link: domains of the state that answers come from. The key of the
// links is in the ledger.
type customers struct {
	*resolver.Resolver
	verifier platform.Verifier
}

// View implements console.Customers.
func (c customers) View(ctx context.Context, project catalog.UUID, domain string) (catalog.VerificationView, error) {
	of, err := c.subject(project, domain)
	if err != nil {
		return catalog.VerificationView{}, err
	}
	return c.verifier.View(ctx, of)
}

// Check implements console.Customers.
func (c customers) Check(ctx context.Context, project catalog.UUID, domain string) (catalog.VerificationView, time.Duration, error) {
	of, err := c.subject(project, domain)
	if err != nil {
		return catalog.VerificationView{}, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, platform.CheckTime)
	defer cancel()
	return c.verifier.Check(ctx, of)
}

// subject finds the domain, if it is still the project's.
func (c customers) subject(project catalog.UUID, domain string) (of dcv.Subject, err error) {
	d, p, err := c.ServedDomain(domain)
	if err != nil {
		return of, err
	}
	if p.UUID != project {
		return of, catalog.NotFound("domain")
	}
	return platform.SubjectOf(p, d), nil
}
