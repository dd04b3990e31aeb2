package node

import (
	"context"
	"fmt"
	"maps"

	"fingerpost/api/conditions"
	"fingerpost/api/platform"
	"fingerpost/api/web"
	"fingerpost/configsrc"
	"fingerpost/configsrc/verify"
	"fingerpost/configsrc/verify/authdns"
	"fingerpost/resolver/catalog"
)

// checksDomains reports whether the node checks domains: it writes what it finds into the files.
func (n *service) checksDomains() bool { return !n.cluster.isEdge() && !n.o.Files.ReadOnly }

// openVerification makes the checks of domains. On a node that makes none it shows what the files say.
func (o *opening) openVerification(context.Context) (err error) {
	options := verify.Options{Domains: verify.Live{Resolver: o.resolver}, Changes: verify.NewFeed(o.resolver),
		Ledger: o.resolver.Records, Trail: o.resolver, Logger: o.o.Logger}
	if o.checksDomains() {
		options.Writer = o.newOwnWriter()
		dns := authdns.Options{Allow: o.o.DNS.Allow, Logger: o.o.Logger}
		if o.o.DNS.Resolver.IsValid() {
			dns.Resolver = o.o.DNS.Resolver.String()
		}
		o.dns, err = authdns.New(dns)
		options.Checker = o.dns
	}
	o.verify = verify.New(options)
	return err
}

// runVerification checks domains until ctx ends.
func (n *service) runVerification(ctx context.Context) (ended chan struct{}) {
	return n.run(func() error {
		if n.checksDomains() {
			n.verify.Run(ctx)
		}
		return nil
	})
}

// An ownWriter makes writes that no client asks for: what checks have found, and the ends of rotations.
type ownWriter struct {
	source   *configsrc.Source
	store    web.Store
	mayWrite func() error
}

func (n *service) newOwnWriter() ownWriter {
	mayWrite := func() error { return nil }
	if n.cluster.isAuthority() {
		mayWrite = n.cluster.authority.MayWrite
	}
	return ownWriter{n.source, n.resolver, mayWrite}
}

// permitted returns why nothing may be written at the moment, nil if it may.
func (w ownWriter) permitted() error {
	switch {
	case !w.store.Writable():
		return &catalog.Error{Code: catalog.CodeUnavailable, Message: "the store has failed; writes wait until it is back"}
	case !w.store.Auditable():
		return catalog.ErrUnaudited
	}
	return w.mayWrite()
}

// SetVerified implements verify.Writer.
func (w ownWriter) SetVerified(ctx context.Context, d verify.Domain, value, reason string) error {
	if err := w.permitted(); err != nil {
		return err
	}
	err := w.source.SetVerified(ctx, d.Project, d.Name, d.Verified, value, reason)
	if catalog.IsConflict(err) || catalog.IsNotFound(err) {
		return fmt.Errorf("%w: %w", verify.ErrOvertaken, err)
	}
	return err
}

// verification is what the rest of the node sees of the checks.
type verification struct{ *verify.Service }

// Status implements ops.Domains.
func (v verification) Status() any {
	if st := v.Service.Status(); st != nil {
		return st
	}
	return nil
}

// AddFacts implements ops.Facts. Pending domains are counted: customers have time for them.
func (v verification) AddFacts(s *conditions.State) {
	st := v.Service.Status()
	if st == nil {
		return
	}
	s.DomainChecks, s.MoreDomains = st.Problem, maps.Clone(st.Ownership)
	for _, d := range st.Trouble {
		s.MoreDomains[d.Ownership]--
		s.Domains = append(s.Domains, conditions.Domain{Project: d.ProjectID, Name: d.Domain, State: d.Ownership,
			Since: d.Since})
	}
}

// unproven reports whether domains may be in a state of ownership. An edge has the authority list them, if the files have
// domains checked; a read-only node knows none.
func (n *service) unproven(ownership string) bool {
	if n.cluster.isEdge() {
		_, on := verify.Live{Resolver: n.resolver}.Policy()
		return on
	}
	return n.verify.Some(ownership)
}

// Each implements platform.Verifier.
func (v verification) Each(yield func(platform.Standing) bool) error {
	return v.Service.Each(func(s verify.Standing) bool { return yield(platform.Standing(s)) })
}
