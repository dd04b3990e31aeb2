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
		key := s.Live.Keys().Lookup([]byte(r.Key.ID))
		switch {
		case key == nil || key.Hash != r.Key.Hash || key.Expired(time.Now()):
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

// limits returns a function with the coverages of the keys that must be allowed to make a proposal's change now: that of
// the caller, and those of the keys that have made the proposal.
func (s *Proposals) limits(key *resolver.Key) func(*proposals.Proposal, *compare.Weight) ([]catalog.Coverage, error) {
	return func(p *proposals.Proposal, w *compare.Weight) ([]catalog.Coverage, error) {
		if !sees(key)(p) || !w.Within(web.CoverageOf(key)) {
			return nil, noProposal(p.Name)
		}
		set, now := s.Live.Keys(), time.Now()
		limits := []catalog.Coverage{web.CoverageOf(key)}
		for _, by := range p.Keys {
			k := set.Lookup([]byte(by.ID))
			gone := k == nil || k.Expired(now) || s.Blocked[k.ID] ||
				k.Allow&(catalog.MayWrite|catalog.MayPropose) == 0
			switch {
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
		case r.Key.Allow&catalog.MayWrite == 0:
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
