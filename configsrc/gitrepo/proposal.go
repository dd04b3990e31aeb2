package gitrepo

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"fingerpost/configsrc/gitrepo/plumbing"
	"fingerpost/resolver/catalog"
)

const proposePrefix = "refs/heads/propose/"

// noProposal is the error for a name without a proposal.
func noProposal(name string) error {
	return &catalog.Error{Code: catalog.CodeNotFound, Message: "no such proposal: " + name}
}

func isNoProposal(err error) bool {
	e, is := errors.AsType[*catalog.Error](err)
	return is && e.Code == catalog.CodeNotFound
}

// A Proposal is a branch of changes that are not live.
type Proposal struct {
	Name      string
	Branch    string
	Head      string // the commit of HEAD that it was compared with
	Commit    string
	Title     string    // the first line of its first commit's message
	Author    string    // of its first commit, Name <address>
	Created   time.Time // of its first commit
	Written   time.Time // of its last one
	Mergeable bool      // into HEAD, without a person
	// Keys are the API keys that have written to it, its maker first, as the ledger has them; nil: a person has made it.
	Keys     []ProposalKey
	Proposed Change // what its branch has changed since it left HEAD's
	Merged   Change // what applying it would change; without files unless it is Mergeable
	// Clashes are the first MaxClashes of the fields that keep it from being Mergeable, and ClashCount is how many there
	// are. None: what conflicts is not a field.
	Clashes    []catalog.Clash
	ClashCount int
	Approvals  []Approval // of Commit, in the order in which they were given

	base    string // the commit at which its branch left HEAD's
	own     string // its first own commit, "" if that is not known
	tree    string // of the merge into HEAD; "": as Merged says
	refused error  // why it can never be merged: it has links, or is too large
}

// inHead reports whether HEAD has all commits of the branch: somebody has merged it, or it has none of its own yet. Then
// there is no proposal.
func (p *Proposal) inHead() bool { return p.base != "" && p.base == p.Commit }

// A Change is the difference of two trees.
type Change struct {
	Files   []catalog.FileEdit // of the config folder, in path order
	Outside bool               // something outside the config folder differs, too

	r             *Repo
	before, after string            // trees
	merged        map[string][]byte // files that differ from after, by path in the repository; nil content: gone
}

// Before returns a file of the config folder as it is before the change, nil if there is none. It is for the functions
// that a Repo calls with a Proposal.
func (c *Change) Before(path string) ([]byte, error) { return c.r.fileIn(c.before, path) }

// After is Before for the file after the change.
func (c *Change) After(path string) ([]byte, error) {
	if content, is := c.merged[c.r.prefix+path]; is {
		return content, nil
	}
	return c.r.fileIn(c.after, path)
}

func (r *Repo) fileIn(tree, path string) ([]byte, error) {
	e, err := plumbing.Find(r.git.Tree, tree, r.prefix+path)
	if err != nil {
		return nil, err
	}
	return r.git.Text(e)
}

// changeOf reads the difference of two trees. refused is what is said against it: it has links, or is
// too large.
func (r *Repo) changeOf(ctx context.Context, before, after string) (c Change, refused, err error) {
	c = Change{r: r, before: before, after: after}
	old, now, err := r.git.Diff(ctx, before, after)
	if errors.Is(err, plumbing.ErrTooLarge) {
		return c, err, nil
	}
	if err != nil {
		return c, nil, err
	}
	room := plumbing.DiffBytes
	for path := range now {
		name, inside := strings.CutPrefix(path, r.prefix)
		if !inside {
			c.Outside = true
			continue
		}
		f := catalog.FileEdit{Path: name}
		if f.Before, err = r.git.Text(old[path]); err == nil {
			f.After, err = r.git.Text(now[path])
		}
		if err != nil {
			return c, nil, fmt.Errorf("%s: %w", path, err)
		}
		if room -= len(f.Before) + len(f.After); room < 0 {
			c.Files = nil
			return c, plumbing.ErrTooLarge, nil
		}
		c.Files = append(c.Files, f)
	}
	slices.SortFunc(c.Files, func(a, b catalog.FileEdit) int { return strings.Compare(a.Path, b.Path) })
	return c, cmp.Or(r.refuseLinks(now), r.refuseLinks(old)), nil
}

// Proposals calls see with the open proposals, by name, until it returns an error. Other work on the repository goes on
// meanwhile.
func (r *Repo) Proposals(ctx context.Context, see func(p *Proposal) error) error {
	names, err := r.proposalNames(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := r.checked(ctx, name, see); err != nil && !isNoProposal(err) {
			return err
		}
	}
	r.described.keepOnly(names)
	return nil
}

func (r *Repo) proposalNames(ctx context.Context) ([]string, error) {
	out, err := r.git.Run(ctx, "for-each-ref", "--format=%(refname)", proposePrefix)
	if err != nil {
		return nil, err
	}
	names := strings.Fields(out)
	for i := range names {
		names[i] = strings.TrimPrefix(names[i], proposePrefix)
	}
	return names, nil
}

// open reads a proposal; NOT_FOUND if there is none of the name. It needs no lock: what it returns was so a moment ago.
func (r *Repo) open(ctx context.Context, name string) (head, *Proposal, error) {
	h, err := r.head(ctx)
	if err != nil && !errors.Is(err, errDetached) {
		return h, nil, unavailable(err)
	}
	tip, err := r.git.Ref(proposePrefix + name)
	if err != nil {
		return h, nil, err
	}
	if tip == "" {
		return h, nil, noProposal(name)
	}
	p, err := r.proposal(ctx, h, name, tip)
	switch {
	case err != nil && ctx.Err() != nil:
		err = unavailable(errors.New("the branches of proposals are still being read"))
	case err == nil && p.inHead():
		return h, nil, noProposal(name)
	}
	return h, p, err
}

// proposal describes a proposal, once for each pair of HEAD and last commit.
func (r *Repo) proposal(ctx context.Context, h head, name, tip string) (*Proposal, error) {
	d, err := r.described.get(ctx, name, h.commit, tip, func(last *Proposal) (*Proposal, error) {
		return r.describe(ctx, h, name, tip, last)
	})
	if err != nil {
		return nil, err
	}
	p := *d
	record, err := r.recordOf(ctx, name, tip)
	if err != nil {
		return nil, err
	}
	if record != nil {
		p.Keys, p.Approvals = record.Keys, record.approvalsOf(tip)
		if record.Written.After(p.Written) {
			p.Written = record.Written
		}
	}
	return &p, nil
}

// describe describes a proposal. p is what is known of it from before, nil for nothing.
func (r *Repo) describe(ctx context.Context, h head, name, tip string, p *Proposal) (*Proposal, error) {
	base, own, err := r.leaves(ctx, name, h.commit, tip)
	if err != nil {
		return nil, err
	}
	if p != nil && p.Commit == tip && p.base == base && base != "" && p.refused == nil { // only HEAD has moved
		known := *p
		p = &known
		p.Head, p.Merged, p.Mergeable, p.tree = h.commit, Change{}, false, ""
		p.Clashes, p.ClashCount = nil, 0
	} else if p, err = r.describeBranch(ctx, name, base, own, tip); err != nil {
		return nil, err
	}
	p.Head = h.commit
	if base != "" && p.refused == nil {
		err = r.merge(ctx, h, p)
	}
	return p, err
}

// describeBranch describes what a branch has changed since base. own is its first own commit.
func (r *Repo) describeBranch(ctx context.Context, name, base, own, tip string) (*Proposal, error) {
	p := &Proposal{Name: name, Branch: strings.TrimPrefix(proposePrefix, "refs/heads/") + name, Commit: tip, base: base,
		own: own, Proposed: Change{Outside: true}} // until it is known what it changes
	last, err := r.git.Commit(tip)
	if err != nil {
		return nil, err
	}
	first := last
	if base != "" { // else its base is gone
		since, err := r.git.Commit(base)
		if err != nil {
			return nil, err
		}
		if own != "" {
			if first, err = r.git.Commit(own); err != nil {
				return nil, err
			}
		}
		if p.Proposed, p.refused, err = r.changeOf(ctx, since.Tree, last.Tree); err != nil {
			return nil, err
		}
		if p.refused != nil {
			p.Proposed.Outside = true
		}
	}
	var address string
	p.Title = firstLine(first.Message)
	p.Author, address, p.Created = person(first.Author)
	p.Author = nameOnly(p.Author) + " <" + nameOnly(address) + ">"
	_, _, p.Written = person(last.Committer)
	return p, nil
}

// merge fills in what applying a proposal would change: field by field, else as git merges text, for what people have
// added to the branch. A conflict leaves it not Mergeable.
func (r *Repo) merge(ctx context.Context, h head, p *Proposal) error {
	if p.base == h.commit {
		last, err := r.git.Commit(p.Commit)
		if err == nil {
			p.Merged, p.tree, p.Mergeable = p.Proposed, last.Tree, true
		}
		return err
	}
	if !p.Proposed.Outside {
		s := newScratch(r, h.tree)
		c, err := s.applyEach(ctx, p.Proposed.Files, false)
		switch {
		case err != nil:
			return err
		case len(c.reasons) == 0:
			r.mergeFields(h, p, s)
			return nil
		}
		p.ClashCount, p.Clashes = len(c.fields), c.fields[:min(len(c.fields), MaxClashes)]
	}
	tree, err := r.git.Run(ctx, "merge-tree", "--write-tree", "--no-messages", h.commit, p.Commit)
	if plumbing.ExitCode(err) == 1 {
		return nil
	}
	if err == nil {
		err = r.git.SettleTree(ctx, h.tree, tree)
	}
	if err != nil {
		return err
	}
	p.tree, p.Clashes, p.ClashCount = tree, nil, 0
	p.Merged, p.refused, err = r.changeOf(ctx, h.tree, tree)
	p.Mergeable = err == nil && p.refused == nil
	return err
}

// mergeFields takes the result of a merge field by field. Its tree is made when it is applied: a list of proposals
// stores nothing.
func (r *Repo) mergeFields(h head, p *Proposal, s *scratch) {
	p.Merged, p.Mergeable = Change{r: r, before: h.tree, after: h.tree, merged: s.now}, true
	for path, content := range s.now {
		if (content == nil) != (s.was[path] == nil) || !bytes.Equal(content, s.was[path]) {
			p.Merged.Files = append(p.Merged.Files, catalog.FileEdit{Path: strings.TrimPrefix(path, r.prefix),
				Before: s.was[path], After: content})
		}
	}
	slices.SortFunc(p.Merged.Files, func(a, b catalog.FileEdit) int { return strings.Compare(a.Path, b.Path) })
}

// mergeTree makes the tree of a merge.
func (r *Repo) mergeTree(ctx context.Context, h head, p *Proposal) (string, error) {
	if p.tree != "" {
		return p.tree, nil
	}
	s := newScratch(r, h.tree)
	for path, content := range p.Merged.merged {
		if err := s.load(path); err != nil {
			return "", err
		}
		s.now[path] = content
	}
	changes, err := s.changes(ctx)
	if err != nil {
		return "", err
	}
	return r.git.NewTree(h.tree, changes)
}

// person reads the line of an author or committer.
func person(line string) (name, address string, at time.Time) {
	name, address, date := identityOf(line)
	var unix int64
	if _, err := fmt.Sscan(strings.TrimPrefix(date, "@"), &unix); err == nil {
		at = time.Unix(unix, 0).UTC()
	}
	return name, address, at
}
