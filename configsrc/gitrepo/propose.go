package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"time"

	"fingerpost/resolver/catalog"
)

// ProposalTip returns the last commit of a proposal, if check has nothing against it.
func (r *Repo) ProposalTip(ctx context.Context, name string, check func(p *Proposal) error) (string, error) {
	p, err := r.checked(ctx, name, check)
	if err != nil {
		return "", err
	}
	return p.Commit, nil
}

// ProposalBase returns the commit that the next write of a key to a proposal is made on: ProposalTip, or HEAD, with
// every
// write that was answered, if there is no such proposal and the key may open one.
func (r *Repo) ProposalBase(ctx context.Context, name, key string, check func(p *Proposal) error) (commit string,
	exists bool, err error) {
	commit, err = r.ProposalTip(ctx, name, check)
	if err == nil || !isNoProposal(err) {
		return commit, true, err
	}
	if err := r.mayOpen(ctx, key); err != nil {
		return "", false, err
	}
	// A client may propose a change to what it has just written.
	if err := r.commitPending(ctx); err != nil {
		return "", false, unavailable(err)
	}
	r.work.Lock()
	defer r.work.Unlock()
	h, err := r.head(ctx)
	if err != nil {
		return "", false, unavailable(err)
	}
	if h.commit == "" {
		return "", false, &catalog.Error{Code: catalog.CodeConflict,
			Message: "there is no commit yet that a proposal could change"}
	}
	return h.commit, false, nil
}

func (r *Repo) checked(ctx context.Context, name string, check func(p *Proposal) error) (*Proposal, error) {
	r.work.Lock()
	defer r.work.Unlock()
	_, p, err := r.open(ctx, name)
	if err == nil {
		err = check(p)
	}
	return p, err
}

// WriteDifference brings a folder, which has the files of a commit below the config folder, to those of another commit.
// from is "" for an empty folder.
func (r *Repo) WriteDifference(ctx context.Context, dir, from, to string) error {
	if from == "" {
		_, err := Extract(ctx, r.o.Dir, to, dir)
		return err
	}
	r.work.Lock()
	defer r.work.Unlock()
	var trees [2]string
	for i, id := range []string{from, to} {
		c, err := r.commit(id)
		if err != nil {
			return err
		}
		trees[i] = c.tree
	}
	_, changes, err := r.diff(ctx, trees[0], trees[1])
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for name, e := range changes {
		name, inside := strings.CutPrefix(name, r.prefix)
		if !inside {
			continue
		}
		content, err := r.blob(e)
		if err == nil && e.id == "" {
			err = root.Remove(name)
		} else if err == nil {
			if err = root.MkdirAll(path.Dir(name), 0o700); err == nil {
				err = root.WriteFile(name, content, 0o600)
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// Propose adds writes of a key, whose files are those of base before them, to the proposal of a name. base is what
// ProposalBase has returned. The error is UNAVAILABLE if somebody else has changed the branch since, and
// NOTHING_CHANGED
// if there is no proposal and the writes change nothing. see gets the proposal as it is then.
func (r *Repo) Propose(ctx context.Context, name, base string, by ProposalKey, writes []*catalog.FileWrite,
	see func(p *Proposal) error) error {
	r.work.Lock()
	defer r.work.Unlock()
	h, err := r.head(ctx)
	if err != nil {
		return unavailable(err)
	}
	ref := proposePrefix + name
	tip, err := r.ref(ref)
	if err != nil {
		return err
	}
	if tip != "" && tip != base {
		return unavailable(errRace)
	}
	if tip == "" {
		if err := r.mayOpen(ctx, by.Name); err != nil {
			return err
		}
	}
	made := base
	for _, w := range writes {
		if made, err = r.proposeOne(ctx, made, w); err != nil {
			return err
		}
	}
	switch {
	case made == base && tip == "":
		return &catalog.Error{Code: catalog.CodeNothingChanged,
			Message: "the call changes nothing, so there is nothing to propose"}
	case made != base:
		if err := r.noteProposal(ctx, name, tip, made, by); err != nil {
			return err
		}
		if err := r.moveRef(ctx, ref, made, tip, "fingerpost: propose"); errors.Is(err, errRace) {
			return unavailable(err)
		} else if err != nil {
			return err
		}
		r.send(ref + ":" + ref)
	}
	p, err := r.proposal(ctx, h, name, made)
	if err != nil {
		return err
	}
	return see(p)
}

// proposeOne makes the commit of a write.
func (r *Repo) proposeOne(ctx context.Context, onto string, w *catalog.FileWrite) (string, error) {
	c, err := r.commit(onto)
	if err != nil {
		return "", err
	}
	s, pending := newScratch(r, c.tree), &pendingWrite{FileWrite: *w}
	var late *waits
	if err := s.apply(pending, true); errors.As(err, &late) {
		return "", &catalog.Error{Code: catalog.CodeConflict, Message: fmt.Sprintf("the change does not fit the proposal: %v",
			late.err)}
	} else if err != nil {
		return "", err
	}
	changes, err := s.changes(ctx)
	if err != nil || len(changes) == 0 {
		return onto, err
	}
	tree, err := r.newTree(c.tree, changes)
	if err != nil {
		return "", err
	}
	return r.commitTree(ctx, tree, []string{onto}, r.authorOf(pending, time.Now()), message([]*pendingWrite{pending}))
}

func unavailable(err error) error {
	return &catalog.Error{Code: catalog.CodeUnavailable, Message: err.Error() + "; try again in a moment"}
}

// send lets the next push have a refspec.
func (r *Repo) send(refspec string) {
	if !r.o.Push {
		return
	}
	r.mu.Lock()
	r.outgoing = append(r.outgoing, refspec)
	r.mu.Unlock()
	wake(r.wakeSync)
}
