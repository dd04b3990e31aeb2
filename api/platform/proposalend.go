package platform

import (
	"time"

	"fingerpost/api/web"
	"fingerpost/configsrc/compare"
	"fingerpost/configsrc/proposals"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// apply answers POST /api/platform/proposals/{name}/apply.
func (s *Proposals) apply(r *web.Request) error {
	name, ctx, cancel, err := s.onProposal(r, catalog.MayWrite)
	if err != nil {
		return err
	}
	defer cancel()
	comment, err := readComment(r)
	if err != nil {
		return err
	}
	by := r.Author()
	commit, err := s.Set.Apply(ctx, name, by, comment, seenAt(r, seenBy(r.Key, noProposal(name))), s.mayApply(r))
	if err != nil {
		return err
	}
	by.Commit = commit
	s.Live.Note(catalog.AuditApply, by, catalog.FieldChange{Field: "proposal", After: name})
	r.Ctx.Response.Header.Set(web.HeaderCommit, commit)
	return r.SucceedJSON("proposal applied", map[string]string{"name": name, "commit": commit})
}

// seenAt is a check that also refuses a proposal that is not at the commit which the request names, if it names one: the
// client has decided about another state.
func seenAt(r *web.Request, check proposals.Check) proposals.Check {
	return func(p *proposals.Proposal) error {
		if err := check(p); err != nil {
			return err
		}
		q := web.ParseQuery(r.Ctx.URI().QueryString(), commitParam)
		switch commit, given := q.Values[commitParam]; {
		case len(q.Problems) > 0:
			return web.Invalid(q.Problems...)
		case given && commit != p.Commit:
			return &catalog.Error{Code: catalog.CodePrecondition, Message: "the proposal has changed since you looked: its " +
				"last commit is " + p.Commit + " now; read it again"}
		}
		return nil
	}
}

const commitParam = "commit"

// mayApply returns what applying a proposal checks in the turn in which it goes live: the request's key as it is by
// then, and the keys that have made the proposal.
func (s *Proposals) mayApply(r *web.Request) func(*proposals.Proposal, *compare.Weight) ([]catalog.Coverage, error) {
	return func(p *proposals.Proposal, w *compare.Weight) ([]catalog.Coverage, error) {
		key := s.Live.Keys().Renewed(r.Key)
		switch {
		case key == nil || key.Expired(time.Now()):
			return nil, web.RefuseKey
		case key.Allow&catalog.MayWrite == 0:
			return nil, web.RefuseAllow(catalog.MayWrite)
		}
		limits, err := s.limits(key)(p, w)
		if err == nil {
			err = s.approved(p)
		}
		return limits, err
	}
}

// holderOf returns the key that has written to a proposal, or approved of it, as it is now, for an operation that needs
// one of the permissions; nil if it has gone. A person may by now what the claims of then allow.
func holderOf(set *resolver.KeySet, by *proposals.Key, may catalog.Permission) *resolver.Key {
	if by.Person == nil {
		return set.Lookup([]byte(by.ID))
	}
	k := set.ByClaims(resolver.Person{Login: by.Person.Login, Issuer: by.Person.Issuer, Subject: by.Person.Subject},
		by.Person.Claims)
	if k == nil {
		return nil
	}
	return k.For(may)
}

// writer is a request's key as one that writes to a proposal, or approves of it.
func writer(k *resolver.Key) proposals.Key {
	by := proposals.Key{ID: k.ID, Name: k.Name, Limited: !k.EveryProject()}
	if p, claims := k.Person(); p != nil {
		by.Person = &proposals.Person{Login: p.Login, Issuer: p.Issuer, Subject: p.Subject, Claims: claims}
	}
	return by
}

// limits returns a function with the coverages of the keys that must be allowed to make a proposal's change now: that of
// the caller, and those of the keys that have made the proposal.
func (s *Proposals) limits(key *resolver.Key) func(*proposals.Proposal, *compare.Weight) ([]catalog.Coverage, error) {
	return func(p *proposals.Proposal, w *compare.Weight) ([]catalog.Coverage, error) {
		if !sees(key)(p) || !w.Within(web.CoverageOf(key)) {
			return nil, noProposal(p.Name)
		}
		set, now := s.Live.Keys(), time.Now()
		limits := []catalog.Coverage{web.CoverageOf(key)}
		for i := range p.Keys {
			by := &p.Keys[i]
			k := holderOf(set, by, catalog.MayWrite|catalog.MayPropose)
			gone := k == nil || k.Expired(now) || s.Blocked[k.ID] ||
				k.Allow&(catalog.MayWrite|catalog.MayPropose) == 0
			switch {
			case gone && by.Person != nil:
				return nil, &catalog.Error{Code: catalog.CodeConflict, Message: "a person who has written to the proposal may " +
					"not write any more, by the rules of the login; drop the proposal, or propose the change again"}
			case gone && by.Limited:
				return nil, &catalog.Error{Code: catalog.CodeConflict, Message: "a key that has written to the proposal may " +
					"not write any more; drop the proposal, or propose the change again"}
			case !gone && !k.EveryProject():
				limits = append(limits, k.Covers)
			}
		}
		return limits, nil
	}
}

var refuseUnwritable = &catalog.Error{Code: catalog.CodeForbidden,
	Message: "the proposal touches projects that this person may not write to"}

// limitsToShow is limits for a look at a proposal. Who may see it may be a person who may write to a part of it alone.
func (s *Proposals) limitsToShow(key *resolver.Key) func(*proposals.Proposal, *compare.Weight) ([]catalog.Coverage, error) {
	writes := key.For(catalog.MayWrite)
	if writes.Allow&catalog.MayWrite == 0 {
		return s.limits(key)
	}
	limits := s.limits(writes)
	return func(p *proposals.Proposal, w *compare.Weight) ([]catalog.Coverage, error) {
		if !sees(writes)(p) {
			return nil, refuseUnwritable
		}
		return limits(p, w)
	}
}

// drop answers DELETE /api/platform/proposals/{name}: for a key with write that sees it, and for the key that
// made it.
func (s *Proposals) drop(r *web.Request) error {
	name, ctx, cancel, err := s.onProposal(r, catalog.MayWrite|catalog.MayPropose)
	if err != nil {
		return err
	}
	defer cancel()
	err = s.Set.Drop(ctx, name, seenAt(r, func(p *proposals.Proposal) error {
		switch {
		case len(p.Keys) > 0 && p.Keys[0].ID == r.Key.ID:
			return nil
		case !sees(r.Key)(p):
			return noProposal(name)
		case r.Key.Allow&catalog.MayWrite == 0, !sees(r.Key.For(catalog.MayWrite))(p):
			return refuseProposal
		}
		return nil
	}))
	if err != nil {
		return err
	}
	s.Live.Note(catalog.AuditDrop, r.Author(), catalog.FieldChange{Field: "proposal", After: name})
	r.Succeed("proposal dropped", []byte("null"))
	return nil
}
