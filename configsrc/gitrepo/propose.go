package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"fingerpost/configsrc/gitrepo/plumbing"
	"fingerpost/resolver/catalog"
)

// A Tip is the commit at which a proposal is shown or changed.
type Tip struct {
	Commit  string
	Change  Change    // from HEAD to it
	Written time.Time // the proposal's last write; zero if there is no proposal yet
}

// Read returns a file of the config folder as the commit has it, nil if there is none. It is safe for concurrent use.
func (t *Tip) Read(path string) ([]byte, error) { return t.Change.After(path) }

// ProposalTip returns the last commit of a proposal, if check has nothing against it.
func (r *Repo) ProposalTip(ctx context.Context, name string, check func(p *Proposal) error) (*Tip, error) {
	h, p, err := r.open(ctx, name)
	if err == nil {
		err = check(p)
	}
	if err != nil {
		return nil, err
	}
	t := &Tip{Commit: p.Commit, Change: p.Proposed, Written: p.Written}
	refused := p.refused
	if p.base != h.commit {
		last, err := r.git.Commit(p.Commit)
		if err == nil {
			t.Change, refused, err = r.changeOf(ctx, h.tree, last.Tree)
		}
		if err != nil {
			return nil, err
		}
	}
	if refused != nil {
		return nil, &catalog.Error{Code: catalog.CodeConflict, Message: "the proposal cannot be read: " + refused.Error()}
	}
	return t, nil
}

// ProposalBase returns the commit that the next write of the key with an id to a proposal is made on: ProposalTip, or
// HEAD, with every write that was answered, if there is no such proposal and the key may open one.
func (r *Repo) ProposalBase(ctx context.Context, name, key string, check func(p *Proposal) error) (*Tip, error) {
	t, err := r.ProposalTip(ctx, name, check)
	if err == nil || !isNoProposal(err) {
		return t, err
	}
	r.work.Lock()
	err = r.mayOpen(ctx, key)
	r.work.Unlock()
	if err != nil {
		return nil, err
	}
	// A client may propose a change to what it has just written.
	if err := r.commitPending(ctx); err != nil {
		return nil, unavailable(err)
	}
	r.work.Lock()
	defer r.work.Unlock()
	h, err := r.head(ctx)
	if err != nil {
		return nil, unavailable(err)
	}
	if h.commit == "" {
		return nil, &catalog.Error{Code: catalog.CodeConflict,
			Message: "there is no commit yet that a proposal could change"}
	}
	return &Tip{Commit: h.commit, Change: Change{r: r, before: h.tree, after: h.tree}}, nil
}

func (r *Repo) checked(ctx context.Context, name string, check func(p *Proposal) error) (*Proposal, error) {
	_, p, err := r.open(ctx, name)
	if err == nil {
		err = check(p)
	}
	return p, err
}

// Propose adds writes of a key, whose files are those of base before them, to the proposal of a name. base is what
// ProposalBase has returned. The error is UNAVAILABLE if somebody else has changed the branch since, and
// NOTHING_CHANGED
// if there is no proposal and the writes change nothing. see gets the proposal as it is then.
func (r *Repo) Propose(ctx context.Context, name, base string, by ProposalKey, writes []*catalog.FileWrite,
	see func(p *Proposal) error) error {
	h, made, err := r.addWrites(ctx, name, base, by, writes)
	if err != nil {
		return err
	}
	p, err := r.proposal(ctx, h, name, made)
	if err != nil {
		return err
	}
	return see(p)
}

// addWrites is Propose up to the moved branch, whose last commit it returns, with HEAD's.
func (r *Repo) addWrites(ctx context.Context, name, base string, by ProposalKey, writes []*catalog.FileWrite) (h head,
	made string, err error) {
	made = base // its commits are unused objects until the branch moves: they need no lock
	for _, w := range writes {
		if made, err = r.proposeOne(ctx, made, w); err != nil {
			return h, "", err
		}
	}
	r.work.Lock()
	defer r.work.Unlock()
	if h, err = r.head(ctx); err != nil {
		return h, "", unavailable(err)
	}
	ref := proposePrefix + name
	at, err := r.git.Ref(ref)
	if err != nil {
		return h, "", err
	}
	tip := at // of the proposal, "" if there is none
	if tip != "" {
		switch merged, err := r.isMerged(ctx, h, name, tip); {
		case err != nil:
			return h, "", err
		case merged:
			tip = ""
		}
	}
	if tip != "" && tip != base {
		return h, "", unavailable(plumbing.ErrRace)
	}
	if tip == "" {
		if err := r.mayOpen(ctx, by.ID); err != nil {
			return h, "", err
		}
	}
	switch {
	case made == base && tip == "":
		return h, "", &catalog.Error{Code: catalog.CodeNothingChanged,
			Message: "the call changes nothing, so there is nothing to propose"}
	case made != base:
		if err := r.noteProposal(ctx, name, tip, made, by); err != nil {
			return h, "", err
		}
		if err := r.git.MoveRef(ctx, ref, made, at, "fingerpost: propose"); errors.Is(err, plumbing.ErrRace) {
			return h, "", unavailable(err)
		} else if err != nil {
			return h, "", err
		}
		r.send(ref + ":" + ref)
	}
	return h, made, nil
}

// isMerged reports whether HEAD has all commits of a branch, see Proposal.inHead.
func (r *Repo) isMerged(ctx context.Context, h head, name, tip string) (bool, error) {
	base, _, err := r.leaves(ctx, name, h.commit, tip)
	return err == nil && base != "" && base == tip, err
}

// proposeOne makes the commit of a write.
func (r *Repo) proposeOne(ctx context.Context, onto string, w *catalog.FileWrite) (string, error) {
	c, err := r.git.Commit(onto)
	if err != nil {
		return "", err
	}
	s, pending := newScratch(r, c.Tree), &pendingWrite{FileWrite: *w}
	var late *waits
	if err := s.apply(ctx, pending, true); errors.As(err, &late) {
		if refusal, is := errors.AsType[*catalog.Error](late.err); is && refusal.Code == catalog.CodeReadOnly {
			return "", refusal
		}
		return "", &catalog.Error{Code: catalog.CodeConflict, Message: fmt.Sprintf("the change does not fit the proposal: %v",
			late.err)}
	} else if err != nil {
		return "", err
	}
	changes, err := s.changes(ctx)
	if err != nil || len(changes) == 0 {
		return onto, err
	}
	tree, err := r.git.NewTree(c.Tree, changes)
	if err != nil {
		return "", err
	}
	return r.git.CommitTree(ctx, tree, []string{onto}, r.authorOf(pending, time.Now()), message([]*pendingWrite{pending}))
}

// unavailable returns err as the reason why a call is refused for now. A refusal stays what it is.
func unavailable(err error) error {
	if errors.As(err, new(*catalog.Error)) {
		return err
	}
	return &catalog.Error{Code: catalog.CodeUnavailable, Message: err.Error() + "; try again in a moment"}
}

// send lets the next push have a refspec.
func (r *Repo) send(refspec string) {
	if !r.o.Push {
		return
	}
	r.remote.mu.Lock()
	r.remote.outgoing = append(r.remote.outgoing, refspec)
	r.remote.mu.Unlock()
	wake(r.remote.wake)
}
