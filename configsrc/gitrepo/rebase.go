package gitrepo

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"fingerpost/configsrc/gitrepo/plumbing"
	"fingerpost/resolver/catalog"
)

// A rebase makes the commits that the remote lacks again on the remote's commit.
type rebase struct {
	r     *Repo
	tip   string            // the new head
	tree  string            // of tip
	moved map[string]string // new commits, by the old ones
	aside []Overruled
}

// rebase makes the commits between since and the head again on remote. Only unused objects are added. The caller holds
// work.
func (r *Repo) rebase(ctx context.Context, h head, remote, since string) (*rebase, error) {
	onto, err := r.git.Commit(remote)
	if err != nil {
		return nil, err
	}
	_, changes, err := r.git.Diff(ctx, h.tree, onto.Tree)
	if err == nil {
		err = r.refuseLinks(changes) // before any branch is made
	}
	if err != nil {
		return nil, err
	}
	m := &rebase{r: r, tip: onto.ID, tree: onto.Tree, moved: map[string]string{}}
	// Of a merge of ours, its first parents have what the branch had: the rest is in the merge's own edit.
	list, err := r.git.Run(ctx, "rev-list", "--reverse", "--topo-order", "--first-parent", since+".."+h.commit)
	if err != nil {
		return nil, err
	}
	former := strings.Fields(list)
	for _, id := range former {
		c, err := r.git.Commit(id)
		if err != nil {
			return nil, err
		}
		ours := r.isOurs(c)
		if len(c.Parents) == 0 || len(c.Parents) > 1 && !ours {
			return nil, &conflict{fmt.Sprintf("%.12s is a merge of a person that the remote lacks: run \"git pull\" and "+
				"\"git push\" in the clone", id)}
		}
		parent, err := r.git.Commit(c.Parents[0])
		if err != nil {
			return nil, err
		}
		if ours {
			err = m.repeat(ctx, parent, c, onto, former)
		} else {
			err = m.merge(ctx, parent, c)
		}
		if err != nil {
			return nil, err
		}
		m.moved[id] = m.tip
	}
	return m, nil
}

// isOurs reports whether the service has made a commit of API writes.
func (r *Repo) isOurs(c *plumbing.Commit) bool {
	return strings.HasPrefix(c.Committer, "fingerpost <fingerpost@"+r.o.Domain+"> ") &&
		(len(c.Trailers("Fingerpost-Key")) > 0 || len(c.Trailers("Fingerpost-Request")) > 0)
}

// repeat makes the edits of one of our commits again, field by field: those of a write, or those that a proposal has
// brought. Files where the remote has changed the same are left as the remote has them, and the commit is set aside.
// former are the commits that the branch loses.
func (m *rebase) repeat(ctx context.Context, parent, c, onto *plumbing.Commit, former []string) error {
	old, now, err := m.r.git.Diff(ctx, parent.Tree, c.Tree)
	if err != nil {
		return err
	}
	s := newScratch(m.r, m.tree)
	var files []catalog.FileEdit
	for path := range now {
		f := catalog.FileEdit{Path: strings.TrimPrefix(path, m.r.prefix)}
		if f.Before, err = m.r.git.Blob(old[path]); err != nil {
			return err
		}
		if f.After, err = m.r.git.Blob(now[path]); err != nil {
			return err
		}
		files = append(files, f)
	}
	clash, err := s.applyEach(ctx, files, false)
	if err != nil {
		return err
	}
	reasons := clash.reasons
	changes, err := s.changes(ctx)
	if err != nil {
		return err
	}
	if len(reasons) > 0 {
		slices.Sort(reasons)
		name, address, _ := identityOf(onto.Author)
		subject, _, _ := strings.Cut(c.Message, "\n")
		o := Overruled{Commit: c.ID, By: name + " <" + address + ">", Reason: strings.Join(reasons, "; "), Subject: subject,
			Author: catalog.Author{Door: catalog.DoorGit, Commit: c.ID}}
		if keys := c.Trailers("Fingerpost-Key"); len(keys) > 0 {
			o.Author.Key = keys[0]
		}
		if requests := c.Trailers("Fingerpost-Request"); len(requests) > 0 {
			o.Author.RequestID = requests[0]
		}
		name, address, _ = identityOf(c.Author)
		o.Author.Actor = name + " <" + address + ">"
		m.aside = append(m.aside, o)
	}
	if len(changes) == 0 {
		return nil
	}
	tree, err := m.r.git.NewTree(m.tree, changes)
	if err != nil {
		return err
	}
	if len(c.Parents) == 2 {
		return m.addMerge(ctx, tree, c, former)
	}
	return m.add(ctx, tree, c)
}

// addMerge makes the merge of a proposal the new tip. If the proposal has a commit that the branch loses, the merge
// would bring it back: then its change becomes one commit of its author, with the requests of its commits.
func (m *rebase) addMerge(ctx context.Context, tree string, c *plumbing.Commit, former []string) error {
	proposal := c.Parents[1]
	list, err := m.r.git.Run(ctx, "rev-list", "--reverse", proposal, "^"+m.tip)
	if err != nil {
		return err
	}
	alone, lost := *c, false
	for id := range strings.FieldsSeq(list) {
		if slices.Contains(former, id) {
			lost = true
			continue
		}
		own, err := m.r.git.Commit(id)
		if err != nil {
			return err
		}
		if alone.Author == c.Author {
			alone.Author = own.Author
		}
		for _, request := range own.Trailers("Fingerpost-Request") { // c's own trailers are its message's end
			alone.Message += "Fingerpost-Request: " + request + "\n"
		}
	}
	if lost {
		return m.add(ctx, tree, &alone)
	}
	return m.add(ctx, tree, c, proposal)
}

// add makes a commit with the author and message of another one the new tip.
func (m *rebase) add(ctx context.Context, tree string, c *plumbing.Commit, merged ...string) error {
	name, address, date := identityOf(c.Author)
	id, err := m.r.git.CommitTree(ctx, tree, append([]string{m.tip}, merged...),
		identity("AUTHOR", name, address, date), c.Message)
	if err == nil {
		m.tip, m.tree = id, tree
	}
	return err
}

// identityOf splits the line of an author.
func identityOf(line string) (name, address, date string) {
	open, end := strings.LastIndexByte(line, '<'), strings.LastIndexByte(line, '>')
	if open < 0 || end < open {
		return "unknown", "unknown", "0 +0000"
	}
	return strings.TrimSpace(line[:open]), line[open+1 : end], strings.TrimSpace(line[end+1:])
}

// merge makes a person's commit again as git would. git 2.39 takes no merge base, so the tip's tree gets a commit whose
// parent is the base.
func (m *rebase) merge(ctx context.Context, parent, c *plumbing.Commit) error {
	side, err := m.r.git.CommitTree(ctx, m.tree, []string{parent.ID}, identity("AUTHOR", "fingerpost", "fingerpost",
		"0 +0000"), "base of a merge\n")
	if err != nil {
		return err
	}
	out, err := m.r.git.Run(ctx, "merge-tree", "--write-tree", "--name-only", "--no-messages", side, c.ID)
	if plumbing.ExitCode(err) == 1 {
		files := strings.Fields(out)
		return &conflict{fmt.Sprintf("the commit %.12s of a person and the remote have changed the same in %s: run \"git "+
			"pull --rebase\" in the clone, and solve it there",
			c.ID, strings.Join(files[min(1, len(files)):], ", "))}
	}
	if err != nil {
		return err
	}
	tree := strings.TrimSpace(out)
	if tree == m.tree {
		return nil
	}
	if err := m.r.git.SettleTree(ctx, m.tree, tree); err != nil {
		return err
	}
	return m.add(ctx, tree, c)
}

// keepAside makes the branches of the commits that were set aside, and names them.
func (m *rebase) keepAside(ctx context.Context) error {
	for i := range m.aside {
		o := &m.aside[i]
		names := []string{"fingerpost/overruled/" + o.Author.RequestID, "fingerpost/overruled/" + o.Commit[:12]}
		for _, name := range names {
			if _, err := m.r.git.Run(ctx, "check-ref-format", "refs/heads/"+name); err != nil {
				continue
			}
			there, err := m.r.git.Ref("refs/heads/" + name)
			if err != nil {
				return err
			}
			if there == "" {
				err = m.r.git.MoveRef(ctx, "refs/heads/"+name, o.Commit, "", "fingerpost: set aside")
			}
			if err != nil {
				return err
			}
			if there == "" || there == o.Commit {
				o.Branch = name
				break
			}
		}
	}
	return nil
}

// tell reports what has moved, once the branch has.
func (m *rebase) tell() {
	r := m.r
	for _, o := range m.aside {
		delete(m.moved, o.Commit) // its branch keeps it
	}
	if err := r.o.Ledger.MoveCommits(m.moved); err != nil {
		r.o.Logger.Warn("git: the audit trail names commits that have been rewritten since", "error", err)
	}
	for _, o := range m.aside { // before a client is told: then the audit trail has it
		r.o.Logger.Warn("git: a write was set aside, because a person has changed the same first", "write", o.Subject,
			"request", o.Author.RequestID,
			"branch", o.Branch, "by", o.By, "reason", o.Reason)
		if r.o.OnOverruled != nil {
			r.o.OnOverruled(o)
		}
	}
	r.change(func(s *Status) {
		for _, o := range m.aside {
			if !slices.Contains(s.Overruled, o.Branch) {
				s.Overruled = append(s.Overruled, o.Branch)
			}
		}
	})
	r.queue.rebased(m.moved, m.aside)
}
