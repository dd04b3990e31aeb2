// Package proposals shows, changes and applies what API clients have proposed (api/README.md, Proposals): a proposal is
// a branch of the git repository, seen as an overlay over what is live.
//
// It promises that a write to a proposal passes the same steps as one that goes live, on the files of the branch, and
// is committed there instead of placed; that reads of a proposal show what its files declare and what is live
// otherwise; and that applying one judges it against what is live in the same turn in which the branch moves.
//
// It unites three parts that do not know each other: gitrepo has the branches, configsrc.Overlay judges files, and
// overlay.Objects reads what they declare. Who may see or apply a proposal is the caller's to decide: it gives each
// call a check, which gets the proposal with what it touches (compare.Weight). The error of a check is the call's
// error, and nothing was changed.
//
// The cost of a call follows the number of files in which a branch differs, not the number of projects. Only one call
// at a time has the files of a branch decoded in memory. What a proposal touches is found out once for each pair of
// HEAD and last commit.
//
// The package does not run git, does not know HTTP, and keeps nothing of its own: what a proposal is stands in the
// repository, and who has written to it in the ledger.
package proposals

import (
	"context"
	"net/url"
	"strings"
	"sync"
	"time"

	"fingerpost/configsrc"
	"fingerpost/configsrc/compare"
	"fingerpost/configsrc/gitrepo"
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/overlay"
)

// A Proposal is a branch of changes that are not live. It is read-only.
type Proposal struct {
	Name, Branch, Commit string
	Title                string // the first line of its first commit's message
	Author               string // of its first commit
	Created, Written     time.Time
	Mergeable            bool
	Keys                 []Key // that have written to it, its maker first; nil: a person has made it
	// Proposed is what its branch changes, and Merged what applying it would change; nil unless it is Mergeable.
	Proposed, Merged *compare.Weight

	head string // the commit of HEAD that it was compared with
}

// Weight is what applying a proposal would change; if it cannot be applied, what its branch changes.
func (p *Proposal) Weight() *compare.Weight {
	if p.Merged != nil {
		return p.Merged
	}
	return p.Proposed
}

// A Key is an API key that has written to a proposal.
type Key = gitrepo.ProposalKey

// A Check says whether a call may go on with a proposal.
type Check func(*Proposal) error

// A Set has the proposals of a repository. Its methods may be called from any goroutine; errors for the client are
// *catalog.Error.
type Set struct {
	repo   *gitrepo.Repo
	live   *resolver.Resolver
	source *configsrc.Source
	web    string
	turn   chan struct{} // of capacity 1: held by the call that is on the state of a proposal

	mu    sync.Mutex
	known map[string]*Proposal // by name, with what they touched when they were looked at last
}

// New returns the proposals of a repository, whose config folder is that of source. web is the address of its web page,
// "" for none.
func New(repo *gitrepo.Repo, live *resolver.Resolver, source *configsrc.Source, web string) *Set {
	return &Set{repo: repo, live: live, source: source, web: web, turn: make(chan struct{}, 1),
		known: map[string]*Proposal{}}
}

var errBusy = &catalog.Error{Code: catalog.CodeUnavailable,
	Message: "the branches of proposals are still being read; try again in a moment"}

// begin waits for the turn. Only one call has the decoded files of a branch in memory, which may be large.
func (s *Set) begin(ctx context.Context) (end func(), err error) {
	select {
	case s.turn <- struct{}{}:
		return func() { <-s.turn }, nil
	case <-ctx.Done():
		return nil, errBusy
	}
}

// over returns what a commit of a proposal declares.
func (s *Set) over(tip *gitrepo.Tip) (*overlay.Objects, *configsrc.Overlay, error) {
	at := tip.Written
	if at.IsZero() {
		at = time.Now().UTC()
	}
	objects := overlay.New(s.live, at)
	d := differenceOf(&tip.Change)
	d.After = tip.Read
	files, err := s.source.Overlay(d, objects)
	if err != nil {
		return nil, nil, err
	}
	objects.Ready = files.Bring
	return objects, files, nil
}

// Propose runs write on the state of the proposal of a name, that of the branch if there is none, and adds its
// changes to the proposal. The Overlays are valid until write returns. An error of write is returned as it is, and
// nothing was changed. Calls come one after the other: each is made on the commit of the one before.
func (s *Set) Propose(ctx context.Context, name string, by Key, check Check,
	write func(*overlay.Objects, *configsrc.Overlay) error) (made *Proposal, err error) {
	end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	tip, err := s.repo.ProposalBase(ctx, name, by.ID, s.checked(check))
	if err != nil {
		return nil, err
	}
	objects, files, err := s.over(tip)
	if err != nil {
		return nil, err
	}
	if err := write(objects, files); err != nil {
		return nil, err
	}
	err = s.repo.Propose(ctx, name, tip.Commit, by, files.Writes(), func(found *gitrepo.Proposal) error {
		made = s.weighed(found)
		return nil
	})
	return made, err
}

// checked is a check for a Repo.
func (s *Set) checked(check Check) func(*gitrepo.Proposal) error {
	return func(found *gitrepo.Proposal) error { return check(s.weighed(found)) }
}

// View runs read on the state of a proposal; NOT_FOUND if there is none of the name. The Overlays are valid until read
// returns.
func (s *Set) View(ctx context.Context, name string, check Check,
	read func(*overlay.Objects, *configsrc.Overlay) error) error {
	end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	tip, err := s.repo.ProposalTip(ctx, name, s.checked(check))
	if err != nil {
		return err
	}
	objects, files, err := s.over(tip)
	if err != nil {
		return err
	}
	return read(objects, files)
}

// weighed finds out what a proposal touches, once for each pair of HEAD and last commit.
func (s *Set) weighed(found *gitrepo.Proposal) *Proposal {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &Proposal{Name: found.Name, Branch: found.Branch, Commit: found.Commit, Title: found.Title,
		Author: found.Author, Created: found.Created, Written: found.Written, Mergeable: found.Mergeable, Keys: found.Keys,
		head: found.Head}
	if k := s.known[p.Name]; k != nil && k.Commit == p.Commit && k.head == p.head {
		p.Proposed, p.Merged = k.Proposed, k.Merged
		return p
	}
	p.Proposed = s.source.Weigh(differenceOf(&found.Proposed))
	if found.Mergeable {
		p.Merged = s.source.Weigh(differenceOf(&found.Merged))
	}
	s.known[p.Name] = p
	return p
}

func differenceOf(c *gitrepo.Change) *compare.Difference {
	return &compare.Difference{Files: c.Files, Outside: c.Outside, Before: c.Before, After: c.After}
}

// List returns the open proposals that sees reports, by name.
func (s *Set) List(ctx context.Context, sees func(*Proposal) bool) (list []*Proposal, err error) {
	open := map[string]bool{}
	err = s.repo.Proposals(ctx, func(found *gitrepo.Proposal) error {
		open[found.Name] = true
		if p := s.weighed(found); sees(p) {
			list = append(list, p)
		}
		return nil
	})
	if ctx.Err() != nil { // the next call goes on where this one has ended
		return nil, errBusy
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.known {
		if !open[name] {
			delete(s.known, name)
		}
	}
	return list, nil
}

// A Look is a proposal with what a person wants to know before it is applied.
type Look struct {
	*Proposal
	Commits    []gitrepo.ProposalCommit // the first one first
	AllCommits bool                     // else they are the latest ones
	Refused    error                    // why Apply would refuse it now; nil: it would not
	Brings     hclfile.Diagnostics      // the warnings that it would bring; none if it is refused
}

// lookTime is how long a Look waits for its turn while the files are being reloaded. Meanwhile no commit is made.
const lookTime = 500 * time.Millisecond

// Look returns a proposal with its commits, and whether Apply would take it now; permit is that of Apply.
func (s *Set) Look(ctx context.Context, name string, check Check,
	permit func(*Proposal, *compare.Weight) ([]catalog.Coverage, error)) (*Look, error) {
	var l *Look
	err := s.repo.Look(ctx, name, s.checked(check), func(found *gitrepo.Proposal, commits []gitrepo.ProposalCommit,
		all bool) error {
		l = &Look{Proposal: s.weighed(found), Commits: commits, AllCommits: all, Refused: found.Unfit()}
		if l.Refused != nil {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, lookTime)
		defer cancel()
		l.Brings, l.Refused = s.source.JudgeTurn(ctx, differenceOf(&found.Merged),
			func(w *compare.Weight) ([]catalog.Coverage, error) { return permit(l.Proposal, w) })
		return nil
	})
	return l, err
}

// Apply makes a proposal live, removes it, and returns the branch's new commit. In the turn in which the branch moves,
// it judges the change, and asks permit, which gets what is changed by then, for the coverages of the keys that must be
// allowed to make it.
func (s *Set) Apply(ctx context.Context, name string, by catalog.Author, check Check,
	permit func(*Proposal, *compare.Weight) ([]catalog.Coverage, error)) (commit string, err error) {
	turn := func(found *gitrepo.Proposal, move func() error) error {
		p := s.weighed(found)
		return s.source.ApplyTurn(ctx, differenceOf(&found.Merged),
			func(w *compare.Weight) ([]catalog.Coverage, error) { return permit(p, w) }, move)
	}
	return s.repo.ApplyProposal(ctx, name, by, s.checked(check), turn)
}

// Drop removes a proposal.
func (s *Set) Drop(ctx context.Context, name string, check Check) error {
	return s.repo.DropProposal(ctx, name, s.checked(check))
}

// CompareURL returns the page that compares a branch with the live one, "" if there is none. The path is that of GitHub
// and Gitea; GitLab leads on from it.
func (s *Set) CompareURL(branch string) string {
	if s.web == "" {
		return ""
	}
	return strings.TrimSuffix(s.web, "/") + "/compare/" + url.PathEscape(s.repo.Status().Branch) + "..." +
		url.PathEscape(branch)
}
