package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"fingerpost/api"
	"fingerpost/configsrc"
	"fingerpost/configsrc/gitrepo"
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// proposals are the proposals of the git repository, for the API.
type proposals struct {
	*gitrepo.Repo
	source *configsrc.Source // of the live files
	web    string
	state  chan *proposedState // of capacity 1: who has taken it may use it

	mu      sync.Mutex
	weights map[string]*api.Proposal // what proposals touch, as it was found out last, by name
	heads   map[string]string        // the commits of HEAD then
}

// A proposedState is what a proposal's branch declares: its files in a folder of their own, and a store in memory that
// is filled from them by the code that fills the live one. It exists so that an edit is checked against the proposal: a
// project that the proposal creates can be changed in it, and If-Match compares with what the proposal has. Without it
// an edit can only be checked against what is live, and carried over.
//
// There is one, for the branch that was asked for last. It costs as long as a first load to make, and the memory of
// one; the way to another branch costs the files that differ. It goes after a while without questions.
type proposedState struct {
	o        proposedOptions
	repo     *gitrepo.Repo
	commit   string // whose files it has; "": it is empty
	dir      string
	resolver *resolver.Resolver
	source   *configsrc.Source
	end      func()
	idle     *time.Timer
	made     []*catalog.FileWrite // by the call under way
}

type proposedOptions struct {
	data    string            // folder of the live store; "": none
	secrets configsrc.Secrets // of the live files
	fanout  bool
	log     *slog.Logger
}

const (
	proposedPrefix = "proposed-"
	proposedIdle   = 5 * time.Minute
	proposedCache  = 1 << 20 // nobody resolves there
)

var errProposedBusy = &catalog.Error{Code: catalog.CodeUnavailable,
	Message: "the branches of proposals are still being read; try again in a moment"}

// newProposals removes what a process that was killed has left behind.
func newProposals(repo *gitrepo.Repo, source *configsrc.Source, web string, o proposedOptions) *proposals {
	if o.data != "" {
		left, _ := filepath.Glob(filepath.Join(o.data, proposedPrefix+"*"))
		for _, dir := range left {
			_ = os.RemoveAll(dir)
		}
	}
	p := &proposals{Repo: repo, source: source, web: web, state: make(chan *proposedState, 1),
		weights: map[string]*api.Proposal{}, heads: map[string]string{}}
	s := &proposedState{o: o, repo: repo}
	s.idle = time.AfterFunc(proposedIdle, func() { p.close(context.Background()) })
	p.state <- s
	return p
}

// close empties the state, which can be used again.
func (p *proposals) close(ctx context.Context) {
	if p == nil {
		return
	}
	select {
	case s := <-p.state:
		s.empty()
		p.state <- s
	case <-ctx.Done():
	}
}

// with runs f on the state at a commit. While the state is being made, which may take longer than a call, the call and
// those that follow are told to try again.
func (p *proposals) with(ctx context.Context, commit string, f func(s *proposedState) error) error {
	var s *proposedState
	select {
	case s = <-p.state:
	case <-ctx.Done():
		return errProposedBusy
	}
	ready := make(chan error, 1)
	go func() { ready <- s.at(context.WithoutCancel(ctx), commit) }()
	select {
	case err := <-ready:
		defer func() { // also if f panics
			s.idle.Reset(proposedIdle)
			p.state <- s
		}()
		if err != nil {
			return err
		}
		return f(s)
	case <-ctx.Done():
		go func() {
			if err := <-ready; err != nil {
				s.o.log.Warn("git: the files of a proposal cannot be read", "error", err)
			}
			s.idle.Reset(proposedIdle)
			p.state <- s
		}()
		return errProposedBusy
	}
}

// at brings the state to a commit.
func (s *proposedState) at(ctx context.Context, commit string) (err error) {
	if s.commit == commit {
		return nil
	}
	defer func() {
		if err != nil {
			s.empty()
			err = fmt.Errorf("read the files of a proposal: %w", err)
		}
	}()
	if s.commit == "" {
		if s.dir, err = os.MkdirTemp(s.o.data, proposedPrefix+"*"); err != nil { // for this user only
			return err
		}
	}
	if err := s.repo.WriteDifference(ctx, s.dir, s.commit, commit); err != nil {
		return err
	}
	if s.commit == "" {
		err = s.open(ctx)
	} else {
		err = s.source.Reload(ctx)
	}
	if err == nil {
		s.commit = commit
	}
	return err
}

// open fills a new store from the folder.
func (s *proposedState) open(ctx context.Context) (err error) {
	quiet := slog.New(slog.DiscardHandler) // it would speak like the live one
	secrets := s.o.secrets
	secrets.Dir = s.dir
	s.resolver, err = resolver.Open(resolver.Options{CacheBytes: proposedCache, StoreCacheBytes: proposedCache,
		Logger: quiet, OpenSecret: secrets.Open})
	if err != nil {
		return err
	}
	s.source = configsrc.New(configsrc.Options{Dir: s.dir, Sink: s.resolver, Logger: quiet, MaxDelete: 1, Journal: s,
		Fanout: s.o.fanout, OpenSecret: secrets.Open})
	if err := s.source.Load(ctx); err != nil {
		return err
	}
	running, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.source.Run(running)
	}()
	s.end = func() {
		stop()
		<-ended
	}
	return nil
}

func (s *proposedState) empty() {
	if s.end != nil {
		s.end()
	}
	if s.resolver != nil {
		_ = s.resolver.Close()
	}
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
	s.commit, s.dir, s.resolver, s.source, s.end, s.made = "", "", nil, nil, nil, nil
}

// Begin implements configsrc.Journal.
func (s *proposedState) Begin(w *catalog.FileWrite) error { return nil }

// End implements configsrc.Journal. The writes of one call come one after the other.
func (s *proposedState) End(w *catalog.FileWrite, made bool) {
	if made {
		s.made = append(s.made, w)
	}
}

func (s *proposedState) asAPI() api.ProposedState {
	state := api.ProposedState{Resolver: s.resolver, Files: s.source, Explainer: s.source}
	for _, d := range s.source.Status().Problems {
		if name := strings.TrimPrefix(d.File, s.dir+"/"); d.Severity == hclfile.Error && !slices.Contains(state.Broken,
			name) {
			state.Broken = append(state.Broken, name)
		}
	}
	return state
}

// Propose implements api.Proposals.
func (p *proposals) Propose(ctx context.Context, name string, by api.ProposalKey, sees func(*api.Proposal) bool,
	write func(api.ProposedState) error) (made *api.Proposal, err error) {
	base, _, err := p.ProposalBase(ctx, name, by.Name, p.unless(sees, api.ProposalTaken(name)))
	if err != nil {
		return nil, err
	}
	err = p.with(ctx, base, func(s *proposedState) error {
		s.made = nil
		defer func() {
			if made == nil && len(s.made) > 0 { // the folder has what the branch has not
				s.empty()
			}
		}()
		if err := write(s.asAPI()); err != nil {
			return err
		}
		return p.Repo.Propose(ctx, name, base, gitrepo.ProposalKey(by), s.made, func(found *gitrepo.Proposal) error {
			s.commit, made = found.Commit, p.weighed(found)
			return nil
		})
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
	tip, err := p.ProposalTip(ctx, name, p.unless(sees, api.NoProposal(name)))
	if err != nil {
		return err
	}
	return p.with(ctx, tip, func(s *proposedState) error { return read(s.asAPI()) })
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
