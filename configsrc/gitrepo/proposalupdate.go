package gitrepo

import (
	"context"
	"errors"
	"strings"
	"time"

	"fingerpost/configsrc/gitrepo/plumbing"
	"fingerpost/resolver/catalog"
)

// MaxClashes is how many clashes of a proposal are kept.
const MaxClashes = 100

// UpdateProposal brings a proposal that conflicts up to date, as a key: it takes the proposal's values onto what HEAD
// has, field by field, as a merge of HEAD into the branch, and returns the proposal. An object that HEAD does not have
// any more is a CONFLICT, as is what has no fields. NOTHING_CHANGED: nothing conflicts. check decides whether the key
// may.
func (r *Repo) UpdateProposal(ctx context.Context, name string, key ProposalKey, by catalog.Author,
	check func(p *Proposal) error) (*Proposal, error) {
	if err := r.commitPending(ctx); err != nil { // what was answered as live is what it is brought up to
		return nil, unavailable(err)
	}
	h, p, err := r.open(ctx, name)
	if err == nil {
		err = check(p)
	}
	if err != nil {
		return nil, err
	}
	made, err := r.updated(ctx, h, p, by) // unused objects until the branch moves: they need no lock
	if err != nil {
		return nil, err
	}
	r.work.Lock()
	defer r.work.Unlock()
	ref := proposePrefix + name
	if tip, err := r.git.Ref(ref); err != nil || tip != p.Commit {
		return nil, errors.Join(err, unavailable(plumbing.ErrRace))
	}
	// A commit that a rebase has taken from HEAD since would become part of the proposal.
	if now, err := r.head(ctx); err != nil && !errors.Is(err, errDetached) {
		return nil, unavailable(err)
	} else if still, err := r.git.IsAncestor(ctx, h.commit, now.commit); err != nil || !still {
		return nil, errors.Join(err, unavailable(plumbing.ErrRace))
	}
	if err := r.noteProposal(ctx, name, p.Commit, made, key); err != nil {
		return nil, err
	}
	next, err := r.proposal(ctx, h, name, made) // once the branch has moved, nothing may fail
	if err != nil {
		return nil, err
	}
	if err := r.git.MoveRef(ctx, ref, made, p.Commit, "fingerpost: bring up to date"); errors.Is(err, plumbing.ErrRace) {
		return nil, unavailable(err)
	} else if err != nil {
		return nil, err
	}
	r.send(ref + ":" + ref)
	return next, nil
}

// updated makes the commit of UpdateProposal.
func (r *Repo) updated(ctx context.Context, h head, p *Proposal, by catalog.Author) (string, error) {
	switch {
	case p.Mergeable:
		return "", &catalog.Error{Code: catalog.CodeNothingChanged,
			Message: "nothing that is live conflicts with the proposal; it is applied as it is"}
	case p.refused != nil || p.Proposed.Outside || p.base == "":
		return "", p.Unfit()
	}
	s := newScratch(r, h.tree)
	left, err := s.applyEach(ctx, p.Proposed.Files, true)
	if err != nil {
		return "", err
	}
	if len(left.reasons) > 0 {
		return "", &catalog.Error{Code: catalog.CodeConflict, Message: "the proposal cannot be brought up to date: " +
			strings.Join(left.reasons, "; ") + "; remove in the proposal what is gone, or drop it"}
	}
	changes, err := s.changes(ctx)
	if err != nil {
		return "", err
	}
	if len(changes) == 0 {
		return "", &catalog.Error{Code: catalog.CodeNothingChanged,
			Message: "nothing of the proposal would be left; drop it"}
	}
	tree, err := r.git.NewTree(h.tree, changes)
	if err != nil {
		return "", err
	}
	w := &pendingWrite{FileWrite: catalog.FileWrite{Author: by, Subject: "Bring proposal " + p.Name + " up to date"}}
	return r.git.CommitTree(ctx, tree, []string{p.Commit, h.commit}, r.authorOf(w, time.Now()),
		message([]*pendingWrite{w}))
}
