package gitrepo

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"fingerpost/configsrc/gitrepo/plumbing"
	"fingerpost/resolver/catalog"
)

// Unfit returns why a proposal cannot be merged as it is; nil: it can.
func (p *Proposal) Unfit() error {
	switch {
	case p.refused != nil:
		return &catalog.Error{Code: catalog.CodeConflict, Message: p.refused.Error()}
	case !p.Mergeable:
		const why = "the proposal and the branch have changed the same since; "
		if p.ClashCount > 0 {
			return &catalog.Error{Code: catalog.CodeConflict, Message: why + "bring the proposal up to date, or drop it"}
		}
		return &catalog.Error{Code: catalog.CodeConflict,
			Message: why + "merge " + p.Branch + " by hand, or drop it and propose the change again"}
	case len(p.Merged.Files) == 0 && !p.Merged.Outside:
		return &catalog.Error{Code: catalog.CodeNothingChanged,
			Message: "the proposal changes nothing that is not live already; drop it"}
	}
	return nil
}

// ApplyProposal merges a proposal into the branch, which makes it live, and removes it. check decides whether the
// caller may see it. turn decides with the proposal as it is merged, and runs move, which moves the branch, in the turn
// in which it has decided. ApplyProposal returns the branch's new commit. comment, "" for none, and the proposal's
// approvals are in the message of a merge commit.
func (r *Repo) ApplyProposal(ctx context.Context, name string, by catalog.Author, comment string,
	check func(p *Proposal) error, turn func(p *Proposal, move func() error) error) (string, error) {
	if err := r.commitPending(ctx); err != nil {
		return "", unavailable(err)
	}
	if _, err := r.checked(ctx, name, check); err != nil { // describes it before the lock
		return "", err
	}
	r.work.Lock()
	defer r.work.Unlock()
	h, p, err := r.open(ctx, name)
	if err == nil {
		err = check(p)
	}
	switch {
	case err != nil:
		return "", err
	case h.branch == "":
		return "", unavailable(errDetached)
	}
	if err := p.Unfit(); err != nil {
		return "", err
	}
	to, err := r.mergeCommit(ctx, h, p, by, comment)
	if err != nil {
		return "", err
	}
	err = r.moveTo(ctx, h, to, "", func(move func() error) error { return turn(p, move) })
	if errors.As(err, new(*conflict)) {
		return "", &catalog.Error{Code: catalog.CodeConflict, Message: err.Error()}
	} else if errors.As(err, new(*catalog.Error)) {
		return "", err
	} else if err != nil {
		return "", unavailable(err)
	}
	// ---- The branch has moved, and the change is live. From here on nothing is answered as a failure. ----
	if err := r.dropProposal(context.WithoutCancel(ctx), p); err != nil {
		r.o.Logger.Warn("git: the branch of an applied proposal stays; it is removed later", "branch", p.Branch, "error", err)
		if r.applied == nil {
			r.applied = map[string]*Proposal{}
		}
		r.applied[p.Name] = p
		wake(r.wakeCommit) // whose loop then tries again
	}
	return to, nil
}

// dropApplied removes the branches of proposals that were applied and whose branches could not be removed then. The
// caller holds work.
func (r *Repo) dropApplied(ctx context.Context) error {
	for name, p := range r.applied {
		if tip, err := r.git.Ref(proposePrefix + name); err == nil && tip == p.Commit { // else it is another proposal
			if err := r.dropProposal(ctx, p); err != nil {
				return err
			}
		}
		delete(r.applied, name)
	}
	return nil
}

// formerRef keeps the commit at which a proposal has left the branch, once the branch does not have it any more.
func formerRef(name string) string { return "refs/fingerpost/former/" + name }

// keepFormer notes for each proposal the commit at which it has left the branch, if a move of the branch from one
// commit to another takes it away: it is rebased, or the upstream was rewritten. Otherwise the proposal would seem to
// have made what came before it, and would bring it back. The caller holds work.
func (r *Repo) keepFormer(ctx context.Context, from, to string) error {
	names, err := r.proposalNames(ctx)
	if err != nil || len(names) == 0 {
		return err
	}
	list, err := r.git.Run(ctx, "rev-list", to+".."+from)
	if err != nil {
		return err
	}
	gone := strings.Fields(list)
	for _, name := range names {
		tip, err := r.git.Ref(proposePrefix + name)
		if err != nil {
			return err
		}
		base, _, err := r.leaves(ctx, name, from, tip)
		if err == nil && slices.Contains(gone, base) {
			err = r.git.SetRef(ctx, formerRef(name), base)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mergeCommit returns the commit to which applying a proposal moves the branch: its last one, if the branch has nothing
// else, nothing was merged into the proposal (a rebase refuses people's merges), and there is nothing to say about it;
// or a merge. If the branch has lost a commit at which the proposal left it, the change is made on the branch as one
// commit of its author, since a merge would bring the lost ones back.
func (r *Repo) mergeCommit(ctx context.Context, h head, p *Proposal, by catalog.Author, comment string) (string, error) {
	ahead, err := r.git.IsAncestor(ctx, h.commit, p.Commit)
	if ahead = ahead && comment == "" && len(p.Approvals) == 0; err == nil && ahead {
		var merges string
		merges, err = r.git.Run(ctx, "rev-list", "--min-parents=2", "--max-count=1", h.commit+".."+p.Commit)
		ahead = merges == ""
	}
	if err != nil || ahead {
		return p.Commit, err
	}
	tree, err := r.mergeTree(ctx, h, p)
	if err != nil {
		return "", err
	}
	w := &pendingWrite{FileWrite: catalog.FileWrite{Author: by, Subject: "Merge proposal " + p.Name}}
	former, err := r.git.Ref(formerRef(p.Name))
	if err != nil {
		return "", err
	}
	lost := former != "" && former == p.base
	if former != "" && !lost { // it was brought up to date since
		if lost, err = r.git.IsAncestor(ctx, former, p.Commit); err != nil {
			return "", err
		}
	}
	parents := []string{h.commit, p.Commit}
	if lost {
		w.Author.Actor = p.Author
		parents = parents[:1]
	}
	return r.git.CommitTree(ctx, tree, parents, r.authorOf(w, time.Now()),
		messageWith([]*pendingWrite{w}, comment, p.Approvals))
}

// DropProposal removes a proposal. check decides.
func (r *Repo) DropProposal(ctx context.Context, name string, check func(p *Proposal) error) error {
	p, err := r.checked(ctx, name, check)
	if err != nil {
		return err
	}
	r.work.Lock()
	defer r.work.Unlock()
	if tip, err := r.git.Ref(proposePrefix + name); err != nil || tip != p.Commit {
		return cmp.Or(err, unavailable(plumbing.ErrRace))
	}
	return r.dropProposal(ctx, p)
}

// A Dropped is a proposal that DropProposals has removed.
type Dropped struct {
	Name   string
	Merged bool // HEAD has its commits; else there was no write since the moment
}

// DropProposals removes the proposals without a write since a moment, and those of API keys that somebody has merged.
func (r *Repo) DropProposals(ctx context.Context, since time.Time) (dropped []Dropped, err error) {
	names, err := r.proposalNames(ctx)
	for _, name := range names {
		d, dropErr := r.dropOld(ctx, name, since)
		if err = errors.Join(err, dropErr); d != nil && dropErr == nil {
			dropped = append(dropped, *d)
		}
	}
	return dropped, err
}

// dropOld removes a proposal that is merged or without a write since a moment. nil: it stays. A branch without commits
// that a person has made stays: the person has just begun.
func (r *Repo) dropOld(ctx context.Context, name string, since time.Time) (*Dropped, error) {
	r.work.Lock()
	defer r.work.Unlock()
	ref := proposePrefix + name
	tip, err := r.git.Ref(ref)
	if err != nil || tip == "" {
		return nil, err
	}
	last, err := r.git.Commit(tip)
	if err != nil {
		return nil, err
	}
	record, err := r.recordOf(ctx, name, tip)
	if err != nil {
		return nil, err
	}
	merged := false
	if record != nil {
		h, err := r.head(ctx)
		if err == nil || errors.Is(err, errDetached) {
			merged, err = r.isMerged(ctx, h, name, tip)
		}
		if err != nil {
			return nil, err
		}
	}
	_, _, at := person(last.Committer)
	if !merged && (!at.Before(since) || record != nil && !record.Written.Before(since)) {
		return nil, nil
	}
	p := &Proposal{Name: name, Branch: strings.TrimPrefix(ref, "refs/heads/"), Commit: tip}
	if merged { // the remote's branch stays: it may have commits that were added since
		return &Dropped{name, true}, r.removeBranch(ctx, p)
	}
	return &Dropped{name, false}, r.dropProposal(ctx, p)
}

// dropProposal removes a proposal here and from the remote.
func (r *Repo) dropProposal(ctx context.Context, p *Proposal) error {
	err := r.removeBranch(ctx, p)
	if err == nil {
		r.send(":refs/heads/" + p.Branch)
	}
	return err
}

// removeBranch removes a proposal's branch, and what is kept of it.
func (r *Repo) removeBranch(ctx context.Context, p *Proposal) error {
	ref := "refs/heads/" + p.Branch
	err := r.files.PatientGitTurn(ctx, func() error { // removing a ref touches git's folder
		return r.git.ChangeRef(ctx, ref, "-d", ref, p.Commit)
	})
	if err != nil {
		return unavailable(err)
	}
	if former, err := r.git.Ref(formerRef(p.Name)); err != nil || former != "" {
		if err == nil {
			err = r.git.SetRef(ctx, formerRef(p.Name), "")
		}
		if err != nil { // the next proposal of the name does not have that commit
			r.o.Logger.Warn("git: a ref of a former proposal stays", "ref", formerRef(p.Name), "error", err)
		}
	}
	if err := r.o.Ledger.ChangeProposals(nil, p.Name); err != nil { // it names commits that no branch has any more
		r.o.Logger.Warn("git: the record of a proposal stays", "proposal", p.Name, "error", err)
	}
	return nil
}
