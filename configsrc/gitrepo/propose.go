package gitrepo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"fingerpost/resolver/catalog"
)

const proposePrefix = "refs/heads/propose/"

// NoProposal is the error for a name without a proposal.
func NoProposal(name string) error {
	return &catalog.Error{Code: catalog.CodeNotFound, Message: "no such proposal: " + name}
}

// A Proposal is a branch of changes that are not live.
type Proposal struct {
	Name      string
	Branch    string
	Commit    string
	Key       string    // that made its first commit; "": unknown
	Author    string    // of its first commit, Name <address>
	Created   time.Time // of its first commit
	Mergeable bool      // into HEAD, without a person
	Files     []catalog.FileEdit

	tree    string // of the merge into HEAD
	refused error  // why it can never be merged: it has links
}

// ProposalBase returns the commit that the next write of a proposal is made on: the last one of its branch, or HEAD,
// with every write that was answered, if there is no such proposal.
func (r *Repo) ProposalBase(ctx context.Context, name string) (commit string, exists bool, err error) {
	r.work.Lock()
	tip, err := r.ref(proposePrefix + name)
	r.work.Unlock()
	if tip != "" || err != nil {
		return tip, true, err
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

// Propose adds writes, whose files are those of base before them, to the proposal of a name. base is what ProposalBase
// has returned. The error is UNAVAILABLE if somebody else has changed the branch since.
func (r *Repo) Propose(ctx context.Context, name, base string, writes []*catalog.FileWrite) (*Proposal, error) {
	r.work.Lock()
	defer r.work.Unlock()
	h, err := r.head(ctx)
	if err != nil {
		return nil, unavailable(err)
	}
	ref := proposePrefix + name
	tip, err := r.ref(ref)
	if err != nil {
		return nil, err
	}
	if tip != "" && tip != base {
		return nil, unavailable(errRace)
	}
	made := base
	for _, w := range writes {
		if made, err = r.proposeOne(ctx, made, w); err != nil {
			return nil, err
		}
	}
	if made != tip {
		if err := r.moveRef(ctx, ref, made, tip, "fingerpost: propose"); errors.Is(err, errRace) {
			return nil, unavailable(err)
		} else if err != nil {
			return nil, err
		}
		r.send(ref + ":" + ref)
	}
	return r.proposal(ctx, h, ref, made)
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

// Proposals lists the open proposals, by name.
func (r *Repo) Proposals(ctx context.Context) ([]*Proposal, error) {
	r.work.Lock()
	defer r.work.Unlock()
	h, err := r.head(ctx)
	if err != nil && !errors.Is(err, errDetached) {
		return nil, err
	}
	out, err := r.git.run(ctx, "for-each-ref", "--format=%(refname) %(objectname)", proposePrefix)
	if err != nil {
		return nil, err
	}
	list := []*Proposal{}
	for line := range strings.Lines(out) {
		ref, id, _ := strings.Cut(strings.TrimSpace(line), " ")
		p, err := r.proposal(ctx, h, ref, id)
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

// Proposal returns an open proposal; NOT_FOUND if there is none of the name.
func (r *Repo) Proposal(ctx context.Context, name string) (*Proposal, error) {
	r.work.Lock()
	defer r.work.Unlock()
	_, p, err := r.open(ctx, name)
	return p, err
}

func (r *Repo) open(ctx context.Context, name string) (head, *Proposal, error) {
	h, err := r.head(ctx)
	if err != nil {
		return h, nil, unavailable(err)
	}
	tip, err := r.ref(proposePrefix + name)
	if err != nil {
		return h, nil, err
	}
	if tip == "" {
		return h, nil, NoProposal(name)
	}
	p, err := r.proposal(ctx, h, proposePrefix+name, tip)
	return h, p, err
}

// proposal describes a proposal. The caller holds work.
func (r *Repo) proposal(ctx context.Context, h head, ref, tip string) (*Proposal, error) {
	p := &Proposal{Name: strings.TrimPrefix(ref, proposePrefix), Branch: strings.TrimPrefix(ref, "refs/heads/"),
		Commit: tip}
	first, err := r.commit(tip)
	if err != nil {
		return nil, err
	}
	base := ""
	if h.commit != "" {
		if base, err = r.git.run(ctx, "merge-base", h.commit, tip); exitCode(err) == 1 {
			base, err = "", nil // its base is gone
		}
		if err != nil {
			return nil, err
		}
	}
	if base != "" {
		last := first
		if out, err := r.git.run(ctx, "rev-list", "--reverse", "--first-parent", base+".."+tip); err == nil && out != "" {
			if first, err = r.commit(strings.Fields(out)[0]); err != nil {
				return nil, err
			}
		}
		since, err := r.commit(base)
		if err != nil {
			return nil, err
		}
		old, now, err := r.diff(ctx, since.tree, last.tree)
		if err != nil {
			return nil, err
		}
		p.refused = cmp.Or(r.refuseLinks(now), r.refuseLinks(old))
		for path := range now {
			f := catalog.FileEdit{Path: strings.TrimPrefix(path, r.prefix)}
			if !strings.HasPrefix(path, r.prefix) {
				f.Path = "/" + path // outside the config folder
			}
			if f.Before, err = r.text(old[path]); err == nil {
				f.After, err = r.text(now[path])
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			p.Files = append(p.Files, f)
		}
		slices.SortFunc(p.Files, func(a, b catalog.FileEdit) int { return strings.Compare(a.Path, b.Path) })
		if p.refused == nil {
			if p.tree, err = r.merged(ctx, h, p); err != nil {
				return nil, err
			}
		}
		p.Mergeable = p.tree != ""
	}
	name, address, date := identityOf(first.author)
	p.Author = name + " <" + address + ">"
	var unix int64
	if _, err := fmt.Sscan(date, &unix); err == nil {
		p.Created = time.Unix(unix, 0).UTC()
	}
	if keys := first.trailers("Fingerpost-Key"); len(keys) > 0 {
		p.Key = keys[0]
	}
	return p, nil
}

// text is blob for a list of changes: a link and a submodule have none.
func (r *Repo) text(e entry) ([]byte, error) {
	if e.mode == modeLink || e.mode == modeSubproj {
		return nil, nil
	}
	return r.blob(e)
}

// merged returns the tree of a proposal's merge into HEAD, "" if there is a conflict: field by field, else as git
// merges text, for what people have added to the branch.
func (r *Repo) merged(ctx context.Context, h head, p *Proposal) (string, error) {
	s := newScratch(r, h.tree)
	if !slices.ContainsFunc(p.Files, func(f catalog.FileEdit) bool { return strings.HasPrefix(f.Path, "/") }) {
		err := s.apply(&pendingWrite{FileWrite: catalog.FileWrite{Files: p.Files}}, false)
		if err == nil {
			changes, err := s.changes(ctx)
			if err != nil {
				return "", err
			}
			return r.newTree(h.tree, changes)
		}
		if !errors.As(err, new(*waits)) {
			return "", err
		}
	}
	tree, err := r.git.run(ctx, "merge-tree", "--write-tree", "--no-messages", h.commit, p.Commit)
	if exitCode(err) == 1 {
		return "", nil
	}
	if err == nil {
		err = r.settleTree(ctx, h.tree, tree)
	}
	return tree, err
}

// ApplyProposal merges a proposal into the branch, which makes it live, and removes it. check decides with the proposal
// as it is merged. It returns the branch's new commit.
func (r *Repo) ApplyProposal(ctx context.Context, name string, by catalog.Author,
	check func(p *Proposal) error) (string, error) {
	if err := r.commitPending(ctx); err != nil {
		return "", unavailable(err)
	}
	r.work.Lock()
	defer r.work.Unlock()
	h, p, err := r.open(ctx, name)
	if err != nil {
		return "", err
	}
	if err := check(p); err != nil {
		return "", err
	}
	if p.refused != nil {
		return "", &catalog.Error{Code: catalog.CodeConflict, Message: p.refused.Error()}
	}
	if !p.Mergeable {
		return "", &catalog.Error{Code: catalog.CodeConflict,
			Message: "the proposal and the branch have changed the same since; merge " + p.Branch +
				" by hand, or drop it and propose anew"}
	}
	to := p.Commit
	ahead, err := r.isAncestor(ctx, h.commit, to)
	if err != nil {
		return "", err
	}
	if !ahead {
		w := &pendingWrite{FileWrite: catalog.FileWrite{Author: by, Subject: "Merge proposal " + name}}
		if to, err = r.commitTree(ctx, p.tree, []string{h.commit, to}, r.authorOf(w, time.Now()),
			message([]*pendingWrite{w})); err != nil {
			return "", err
		}
	}
	if err := r.moveTo(ctx, h, to, ""); errors.As(err, new(*conflict)) {
		return "", &catalog.Error{Code: catalog.CodeConflict, Message: err.Error()}
	} else if err != nil {
		return "", unavailable(err)
	}
	return to, r.dropProposal(ctx, p)
}

// DropProposal removes a proposal. check decides.
func (r *Repo) DropProposal(ctx context.Context, name string, check func(p *Proposal) error) error {
	r.work.Lock()
	defer r.work.Unlock()
	_, p, err := r.open(ctx, name)
	if err == nil {
		err = check(p)
	}
	if err != nil {
		return err
	}
	return r.dropProposal(ctx, p)
}

func (r *Repo) dropProposal(ctx context.Context, p *Proposal) error {
	ref := "refs/heads/" + p.Branch
	err := r.files.GitTurn(func() error { // removing a ref touches git's folder
		return r.changeRef(ctx, ref, "-d", ref, p.Commit)
	})
	if err != nil {
		return unavailable(err)
	}
	r.send(":" + ref)
	return nil
}
