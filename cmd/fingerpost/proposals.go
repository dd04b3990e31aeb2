package main

import (
	"context"
	"net/url"
	"strings"
	"sync"
	"time"

	"fingerpost/api"
	"fingerpost/configsrc"
	"fingerpost/configsrc/gitrepo"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// proposals are the proposals of the git repository, for the API.
type proposals struct {
	*gitrepo.Repo
	live   *resolver.Resolver
	source *configsrc.Source
	web    string
	turn   chan struct{} // of capacity 1: held by the call that is on the state of a proposal

	mu      sync.Mutex
	weights map[string]*api.Proposal // what proposals touch, as it was found out last, by name
	heads   map[string]string        // the commits of HEAD then
}

var errProposedBusy = &catalog.Error{Code: catalog.CodeUnavailable,
	Message: "the branches of proposals are still being read; try again in a moment"}

func newProposals(repo *gitrepo.Repo, live *resolver.Resolver, source *configsrc.Source, web string) *proposals {
	return &proposals{Repo: repo, live: live, source: source, web: web, turn: make(chan struct{}, 1),
		weights: map[string]*api.Proposal{}, heads: map[string]string{}}
}

// begin waits for the turn. Only one call has the decoded files of a branch in memory, which may be large.
func (p *proposals) begin(ctx context.Context) error {
	select {
	case p.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return errProposedBusy
	}
}

func (p *proposals) end() { <-p.turn }

// over returns what a commit of a proposal declares.
func (p *proposals) over(tip *gitrepo.Tip) (*configsrc.Overlay, api.ProposedState, error) {
	at := tip.Written
	if at.IsZero() {
		at = time.Now().UTC()
	}
	layer := p.live.Overlay(at)
	d := differenceOf(&tip.Change)
	d.After = tip.Read
	over, err := p.source.Overlay(d, layer)
	if err != nil {
		return nil, api.ProposedState{}, err
	}
	layer.Ready = over.Bring
	return over, api.ProposedState{Projects: layer, Files: over, Explainer: over, Broken: over.Broken()}, nil
}

// Propose implements api.Proposals. Calls come one after the other: each is made on the commit of the one before.
func (p *proposals) Propose(ctx context.Context, name string, by api.ProposalKey, sees func(*api.Proposal) bool,
	write func(api.ProposedState) error) (made *api.Proposal, err error) {
	if err := p.begin(ctx); err != nil {
		return nil, err
	}
	defer p.end()
	tip, err := p.ProposalBase(ctx, name, by.Name, p.unless(sees, api.ProposalTaken(name)))
	if err != nil {
		return nil, err
	}
	over, state, err := p.over(tip)
	if err != nil {
		return nil, err
	}
	if err := write(state); err != nil {
		return nil, err
	}
	err = p.Repo.Propose(ctx, name, tip.Commit, gitrepo.ProposalKey(by), over.Writes(),
		func(found *gitrepo.Proposal) error {
			made = p.weighed(found)
			return nil
		})
	return made, err
}

// unless returns a check that refuses a proposal which the caller does not see.
func (p *proposals) unless(sees func(*api.Proposal) bool, refusal error) func(*gitrepo.Proposal) error {
	return func(found *gitrepo.Proposal) error {
		if !sees(p.weighed(found)) {
			return refusal
		}
		return nil
	}
}

// ViewProposal implements api.Proposals.
func (p *proposals) ViewProposal(ctx context.Context, name string, sees func(*api.Proposal) bool,
	read func(api.ProposedState) error) error {
	if err := p.begin(ctx); err != nil {
		return err
	}
	defer p.end()
	tip, err := p.ProposalTip(ctx, name, p.unless(sees, api.NoProposal(name)))
	if err != nil {
		return err
	}
	_, state, err := p.over(tip)
	if err != nil {
		return err
	}
	return read(state)
}

// weighed finds out what a proposal touches, once for each pair of HEAD and last commit.
func (p *proposals) weighed(found *gitrepo.Proposal) *api.Proposal {
	p.mu.Lock()
	defer p.mu.Unlock()
	made := &api.Proposal{Name: found.Name, Branch: found.Branch, Commit: found.Commit, Author: found.Author,
		Created: found.Created, Mergeable: found.Mergeable}
	for _, k := range found.Keys {
		made.Keys = append(made.Keys, api.ProposalKey(k))
	}
	if known := p.weights[found.Name]; known != nil && known.Commit == found.Commit && p.heads[found.Name] == found.Head {
		made.Proposed, made.Merged = known.Proposed, known.Merged
		return made
	}
	made.Proposed = p.source.Weigh(differenceOf(&found.Proposed))
	if found.Mergeable {
		made.Merged = p.source.Weigh(differenceOf(&found.Merged))
	}
	p.weights[found.Name], p.heads[found.Name] = made, found.Head
	return made
}

func differenceOf(c *gitrepo.Change) *configsrc.Difference {
	return &configsrc.Difference{Files: c.Files, Outside: c.Outside, Before: c.Before, After: c.After}
}

// Proposals implements api.Proposals.
func (p *proposals) Proposals(ctx context.Context, sees func(*api.Proposal) bool) (list []*api.Proposal, err error) {
	open := map[string]bool{}
	err = p.Repo.Proposals(ctx, func(found *gitrepo.Proposal) error {
		open[found.Name] = true
		if w := p.weighed(found); sees(w) {
			list = append(list, w)
		}
		return nil
	})
	if ctx.Err() != nil { // the next call goes on where this one has ended
		return nil, errProposedBusy
	}
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for name := range p.weights {
		if !open[name] {
			delete(p.weights, name)
			delete(p.heads, name)
		}
	}
	return list, nil
}

// ApplyProposal implements api.Proposals.
func (p *proposals) ApplyProposal(ctx context.Context, name string, by catalog.Author, sees func(*api.Proposal) bool,
	permit func(*api.Proposal, *configsrc.Weight) ([]configsrc.Coverage, error)) (string, error) {
	turn := func(found *gitrepo.Proposal, move func() error) error {
		made := p.weighed(found)
		return p.source.ApplyTurn(ctx, differenceOf(&found.Merged),
			func(w *configsrc.Weight) ([]configsrc.Coverage, error) { return permit(made, w) }, move)
	}
	return p.Repo.ApplyProposal(ctx, name, by, p.unless(sees, api.NoProposal(name)), turn)
}

// DropProposal implements api.Proposals.
func (p *proposals) DropProposal(ctx context.Context, name string, may func(*api.Proposal) error) error {
	return p.Repo.DropProposal(ctx, name, func(found *gitrepo.Proposal) error { return may(p.weighed(found)) })
}

// CompareURL implements api.Proposals. The path is that of GitHub and Gitea; GitLab leads on from it.
func (p *proposals) CompareURL(branch string) string {
	if p.web == "" {
		return ""
	}
	return strings.TrimSuffix(p.web, "/") + "/compare/" + url.PathEscape(p.Status().Branch) + "..." +
		url.PathEscape(branch)
}
