// Package proposals shows, changes and applies what API clients have proposed (api/README.md, Proposals): a proposal is
// a branch of the git repository, seen as an overlay over what is live.
//
// It promises that a write to a proposal passes the same steps as one that goes live, on the files of the branch, and
// is committed there instead of placed; that reads of a proposal show what its files declare and what is live
// otherwise; and that applying one judges it against what is live in the same turn in which the branch moves.
//
// It unites three parts that do not know each other: gitrepo has the branches, edits.Overlay judges files, and
// resolver.Overlay reads what they declare. Who may see or apply a proposal is the caller's to decide: it gives each
// call a check, which gets the proposal with what it touches (compare.Weight). The error of a check is the call's
// error, and nothing was changed.
//
// The cost of a call follows the number of files in which a branch differs, not the number of projects. At most three
// calls at a time have the files of a branch decoded in memory, and at most two of one key: the third place is for
// others (package share). What a proposal touches, and why it would be refused, is found out once for each HEAD, last
// commit and generation.
//
// The package does not run git, does not know HTTP, and keeps nothing of its own: what a proposal is stands in the
// repository, and who has written to it in the ledger.
package proposals

import (
	"context"
	"errors"
	"maps"
	"net/url"
	"strings"
	"sync"
	"time"

	"fingerpost/configsrc"
	"fingerpost/configsrc/compare"
	"fingerpost/configsrc/edits"
	"fingerpost/configsrc/gitrepo"
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/share"
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
	Approvals        []Approval // of Commit

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

// A Person is somebody who has signed in, and has written to a proposal.
type Person = gitrepo.ProposalPerson

// An Approval says that a key has read a proposal as it was at a commit, and wants it applied.
type Approval = gitrepo.Approval

// A Check says whether a call may go on with a proposal.
type Check func(*Proposal) error

// A Set has the proposals of a repository. Its methods may be called from any goroutine; errors for the client are
// *catalog.Error.
type Set struct {
	// Needs is how many keys other than those that have written to a proposal must approve of it before it is applied. It
	// is set before the first call.
	Needs int

	repo   *gitrepo.Repo
	live   *resolver.Resolver
	source *configsrc.Source
	web    string
	places *share.Places // for calls, by the id of their key
	names  names         // of the proposals that are being written to

	mu     sync.Mutex          // guards what follows
	known  map[string]*weighed // by name, as they were looked at last
	judged map[string]*judged  // by name and key, as they were looked at last
	blamed map[string]*blamed  // by name, as they were looked at last
}

// places bounds the calls that are at work, because they have the decoded files of a branch in memory. Of three, share
// gives one key two.
const places = 3

// A weighed is what a proposal touches.
type weighed struct {
	commit, head     string
	generation       uint64
	done             chan struct{} // closed with what follows
	proposed, merged *compare.Weight
}

// A judged is the result of a look at a proposal by a key.
type judged struct {
	commit, head string
	generation   uint64
	refused      error
	brings       hclfile.Diagnostics
}

// New returns the proposals of a repository, whose config folder is that of source. web is the address of its web page,
// "" for none.
func New(repo *gitrepo.Repo, live *resolver.Resolver, source *configsrc.Source, web string) *Set {
	return &Set{repo: repo, live: live, source: source, web: web, places: share.New(places),
		known: map[string]*weighed{}, judged: map[string]*judged{}, blamed: map[string]*blamed{}}
}

var errBusy = &catalog.Error{Code: catalog.CodeUnavailable,
	Message: "the branches of proposals are still being read; try again in a moment"}

// begin waits for a place of a key.
func (s *Set) begin(ctx context.Context, key string) (end func(), err error) {
	if end, err = s.places.Take(ctx, key); err != nil {
		return nil, errBusy
	}
	return end, nil
}

// over returns what a commit of a proposal declares. The caller closes the state.
func (s *Set) over(tip *gitrepo.Tip) (*resolver.Overlay, *edits.Overlay, error) {
	at := tip.Written
	if at.IsZero() {
		at = time.Now().UTC()
	}
	state, err := s.live.Overlay(at)
	if err != nil {
		return nil, nil, err
	}
	d := differenceOf(&tip.Change)
	d.After = tip.Read
	files, err := s.source.Overlay(d, state)
	if err != nil {
		return nil, nil, errors.Join(err, state.Close())
	}
	state.Bring = files.Bring
	return state, files, nil
}

// Propose runs write on the state of the proposal of a name, that of the branch if there is none, and adds its
// changes to the proposal. The Overlays are valid until write returns. An error of write is returned as it is, and
// nothing was changed. Calls on one proposal come one after the other: each is made on the commit of the one before.
func (s *Set) Propose(ctx context.Context, name string, by Key, check Check,
	write func(*resolver.Overlay, *edits.Overlay) error) (made *Proposal, err error) {
	free, err := s.names.lockName(ctx, name)
	if err != nil {
		return nil, errBusy
	}
	defer free()
	end, err := s.begin(ctx, by.ID)
	if err != nil {
		return nil, err
	}
	defer end()
	tip, err := s.repo.ProposalBase(ctx, name, by.ID, s.checked(check))
	if err != nil {
		return nil, err
	}
	state, files, err := s.over(tip)
	if err != nil {
		return nil, err
	}
	defer func() { _ = state.Close() }() // nothing of it is kept
	if err := write(state, files); err != nil {
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

// View runs read for a key on the state of a proposal; NOT_FOUND if there is none of the name. The Overlays are valid
// until read returns.
func (s *Set) View(ctx context.Context, key, name string, check Check,
	read func(*resolver.Overlay, *edits.Overlay) error) error {
	end, err := s.begin(ctx, key)
	if err != nil {
		return err
	}
	defer end()
	tip, err := s.repo.ProposalTip(ctx, name, s.checked(check))
	if err != nil {
		return err
	}
	state, files, err := s.over(tip)
	if err != nil {
		return err
	}
	return errors.Join(read(state, files), state.Close())
}

// weighed finds out what a proposal touches, once for each HEAD, last commit and generation.
func (s *Set) weighed(found *gitrepo.Proposal) *Proposal {
	p := &Proposal{Name: found.Name, Branch: found.Branch, Commit: found.Commit, Title: found.Title,
		Author: found.Author, Created: found.Created, Written: found.Written, Mergeable: found.Mergeable, Keys: found.Keys,
		Approvals: found.Approvals, head: found.Head}
	generation := s.live.Generation()
	s.mu.Lock()
	w := s.known[p.Name]
	if w != nil && w.commit == p.Commit && w.head == p.head && w.generation == generation {
		s.mu.Unlock()
		<-w.done
		p.Proposed, p.Merged = w.proposed, w.merged
		return p
	}
	w = &weighed{commit: p.Commit, head: p.head, generation: generation, done: make(chan struct{})}
	s.known[p.Name] = w
	s.mu.Unlock()
	defer close(w.done)
	w.proposed = s.source.Weigh(differenceOf(&found.Proposed))
	if found.Mergeable {
		w.merged = s.source.Weigh(differenceOf(&found.Merged))
	}
	p.Proposed, p.Merged = w.proposed, w.merged
	return p
}

func differenceOf(c *gitrepo.Change) *compare.Difference {
	return &compare.Difference{Files: c.Files, Outside: c.Outside, Before: c.Before, After: c.After}
}

// List returns the open proposals that sees reports, by name, for a key.
func (s *Set) List(ctx context.Context, key string, sees func(*Proposal) bool) (list []*Proposal, err error) {
	end, err := s.begin(ctx, key)
	if err != nil {
		return nil, err
	}
	defer end()
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
	s.forget(func(name string) bool { return !open[name] })
	return list, nil
}

// forget drops what is known of proposals that are gone.
func (s *Set) forget(gone func(name string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.known, func(name string, _ *weighed) bool { return gone(name) })
	maps.DeleteFunc(s.blamed, func(name string, _ *blamed) bool { return gone(name) })
	maps.DeleteFunc(s.judged, func(of string, _ *judged) bool {
		name, _, _ := strings.Cut(of, " ")
		return gone(name)
	})
}

// A Look is a proposal with what a person wants to know before it is applied.
type Look struct {
	*Proposal
	Commits    []gitrepo.ProposalCommit // the first one first
	AllCommits bool                     // else they are the latest ones
	Refused    error                    // why Apply would refuse it now; nil: it would not
	Brings     hclfile.Diagnostics      // the warnings that it would bring; none if it is refused
	// Conflicts are the first fields that keep it from being Mergeable, and ConflictCount is how many there are.
	Conflicts     []Conflict
	ConflictCount int
}

// lookTime is how long a Look waits for its turn while the files are being reloaded.
const lookTime = 500 * time.Millisecond

// Look returns a proposal with its commits for a key, and whether Apply would take it now; permit is that of Apply. rights
// names what the key may do: sessions of a person may differ.
func (s *Set) Look(ctx context.Context, key, rights, name string, check Check,
	permit func(*Proposal, *compare.Weight) ([]catalog.Coverage, error)) (*Look, error) {
	end, err := s.begin(ctx, key)
	if err != nil {
		return nil, err
	}
	defer end()
	var l *Look
	err = s.repo.Look(ctx, name, s.checked(check), func(found *gitrepo.Proposal, commits []gitrepo.ProposalCommit,
		all bool) error {
		l = &Look{Proposal: s.weighed(found), Commits: commits, AllCommits: all, Refused: found.Unfit()}
		if l.Refused == nil {
			l.Brings, l.Refused = s.judge(ctx, rights, l.Proposal, found, permit)
		}
		l.ConflictCount = found.ClashCount
		l.Conflicts, err = s.blame(found)
		return err
	})
	return l, err
}

// judge returns why Apply would refuse a proposal for a key, else the warnings that it would bring. It does so once for
// each HEAD, last commit and generation: a turn between two looks at the files holds up writes.
func (s *Set) judge(ctx context.Context, rights string, p *Proposal, found *gitrepo.Proposal,
	permit func(*Proposal, *compare.Weight) ([]catalog.Coverage, error)) (hclfile.Diagnostics, error) {
	of := p.Name + " " + rights
	now := judged{commit: p.Commit, head: p.head, generation: s.live.Generation()}
	s.mu.Lock()
	last := s.judged[of]
	s.mu.Unlock()
	if last != nil && last.commit == now.commit && last.head == now.head && last.generation == now.generation {
		return last.brings, last.refused
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	now.brings, now.refused = s.source.JudgeTurn(ctx, differenceOf(&found.Merged),
		func(w *compare.Weight) ([]catalog.Coverage, error) { return permit(p, w) })
	e, is := errors.AsType[*catalog.Error](now.refused)
	if now.refused != nil && (!is || e.Code == catalog.CodeUnavailable) {
		return now.brings, now.refused // for a moment only
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.judged[of] = &now
	return now.brings, now.refused
}

// Apply makes a proposal live, removes it, and returns the branch's new commit. In the turn in which the branch moves,
// it judges the change, and asks permit, which gets what is changed by then, for the coverages of the keys that must be
// allowed to make it. comment, "" for none, is in the message of the merge.
func (s *Set) Apply(ctx context.Context, name string, by catalog.Author, comment string, check Check,
	permit func(*Proposal, *compare.Weight) ([]catalog.Coverage, error)) (commit string, err error) {
	turn := func(found *gitrepo.Proposal, move func() error) error {
		p := s.weighed(found)
		return s.source.ApplyTurn(ctx, differenceOf(&found.Merged),
			func(w *compare.Weight) ([]catalog.Coverage, error) { return permit(p, w) }, move)
	}
	return s.repo.ApplyProposal(ctx, name, by, comment, s.checked(check), turn)
}

// Update takes the values of a proposal that conflicts onto what is live, as a commit of a key, and returns the
// proposal.
func (s *Set) Update(ctx context.Context, name string, key Key, by catalog.Author, check Check) (*Proposal, error) {
	free, err := s.names.lockName(ctx, name)
	if err != nil {
		return nil, errBusy
	}
	defer free()
	end, err := s.begin(ctx, key.ID)
	if err != nil {
		return nil, err
	}
	defer end()
	found, err := s.repo.UpdateProposal(ctx, name, key, by, s.checked(check))
	if err != nil {
		return nil, err
	}
	return s.weighed(found), nil
}

// Approve notes that a key approves of a proposal as it is, and returns the proposal. again: it has done so before.
func (s *Set) Approve(ctx context.Context, name string, key Key, by catalog.Author, check Check) (p *Proposal, again bool,
	err error) {
	end, err := s.begin(ctx, key.ID)
	if err != nil {
		return nil, false, err
	}
	defer end()
	found, again, err := s.repo.ApproveProposal(ctx, name, key, by, s.checked(check))
	if err != nil {
		return nil, false, err
	}
	return s.weighed(found), again, nil
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
