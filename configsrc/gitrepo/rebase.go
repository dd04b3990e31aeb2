package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

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
	onto, err := r.git.commit(remote)
	if err != nil {
		return nil, err
	}
	_, changes, err := r.git.diff(ctx, h.tree, onto.tree)
	if err == nil {
		err = r.refuseLinks(changes) // before any branch is made
	}
	if err != nil {
		return nil, err
	}
	m := &rebase{r: r, tip: onto.id, tree: onto.tree, moved: map[string]string{}}
	list, err := r.git.run(ctx, "rev-list", "--reverse", "--topo-order", since+".."+h.commit)
	if err != nil {
		return nil, err
	}
	for id := range strings.FieldsSeq(list) {
		c, err := r.git.commit(id)
		if err != nil {
			return nil, err
		}
		if len(c.parents) != 1 {
			return nil, &conflict{fmt.Sprintf("%.12s is a merge of a person that the remote lacks: run \"git pull\" and "+
				"\"git push\" in the clone", id)}
		}
		parent, err := r.git.commit(c.parents[0])
		if err != nil {
			return nil, err
		}
		if r.isOurs(c) {
			err = m.repeat(ctx, parent, c, onto)
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
func (r *Repo) isOurs(c *commit) bool {
	return strings.HasPrefix(c.committer, "fingerpost <fingerpost@"+r.o.Domain+"> ") &&
		(len(c.trailers("Fingerpost-Key")) > 0 || len(c.trailers("Fingerpost-Request")) > 0)
}

// repeat makes the edits of one of our commits again, field by field. Files where the remote has changed the same are
// left as the remote has them, and the commit is set aside.
func (m *rebase) repeat(ctx context.Context, parent, c, onto *commit) error {
	old, now, err := m.r.git.diff(ctx, parent.tree, c.tree)
	if err != nil {
		return err
	}
	s := newScratch(m.r, m.tree)
	var reasons []string
	for path := range now {
		w := &pendingWrite{}
		f := catalog.FileEdit{Path: strings.TrimPrefix(path, m.r.prefix)}
		if f.Before, err = m.r.git.blob(old[path]); err != nil {
			return err
		}
		if f.After, err = m.r.git.blob(now[path]); err != nil {
			return err
		}
		w.Files = []catalog.FileEdit{f}
		var clash *waits
		if err := s.apply(w, false); errors.As(err, &clash) {
			reasons = append(reasons, clash.err.Error())
		} else if err != nil {
			return err
		}
	}
	changes, err := s.changes(ctx)
	if err != nil {
		return err
	}
	if len(reasons) > 0 {
		slices.Sort(reasons)
		name, address, _ := identityOf(onto.author)
		subject, _, _ := strings.Cut(c.message, "\n")
		o := Overruled{Commit: c.id, By: name + " <" + address + ">", Reason: strings.Join(reasons, "; "), Subject: subject,
			Author: catalog.Author{Door: catalog.DoorGit, Commit: c.id}}
		if keys := c.trailers("Fingerpost-Key"); len(keys) > 0 {
			o.Author.Key = keys[0]
		}
		if requests := c.trailers("Fingerpost-Request"); len(requests) > 0 {
			o.Author.RequestID = requests[0]
		}
		name, address, _ = identityOf(c.author)
		o.Author.Actor = name + " <" + address + ">"
		m.aside = append(m.aside, o)
	}
	if len(changes) == 0 {
		return nil
	}
	tree, err := m.r.git.newTree(m.tree, changes)
	if err != nil {
		return err
	}
	return m.add(ctx, tree, c)
}

// add makes a commit with the author and message of another one the new tip.
func (m *rebase) add(ctx context.Context, tree string, c *commit) error {
	name, address, date := identityOf(c.author)
	id, err := m.r.git.commitTree(ctx, tree, []string{m.tip}, identity("AUTHOR", name, address, date), c.message)
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
func (m *rebase) merge(ctx context.Context, parent, c *commit) error {
	side, err := m.r.git.commitTree(ctx, m.tree, []string{parent.id}, identity("AUTHOR", "fingerpost", "fingerpost",
		"0 +0000"), "base of a merge\n")
	if err != nil {
		return err
	}
	out, err := m.r.git.run(ctx, "merge-tree", "--write-tree", "--name-only", "--no-messages", side, c.id)
	if exitCode(err) == 1 {
		files := strings.Fields(out)
		return &conflict{fmt.Sprintf("the commit %.12s of a person and the remote have changed the same in %s: run \"git "+
			"pull --rebase\" in the clone, and solve it there",
			c.id, strings.Join(files[min(1, len(files)):], ", "))}
	}
	if err != nil {
		return err
	}
	tree := strings.TrimSpace(out)
	if tree == m.tree {
		return nil
	}
	if err := m.r.git.settleTree(ctx, m.tree, tree); err != nil {
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
			if _, err := m.r.git.run(ctx, "check-ref-format", "refs/heads/"+name); err != nil {
				continue
			}
			there, err := m.r.git.ref("refs/heads/" + name)
			if err != nil {
				return err
			}
			if there == "" {
				err = m.r.git.moveRef(ctx, "refs/heads/"+name, o.Commit, "", "fingerpost: set aside")
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
		r.o.Logger.Warn("git: the audit trail names commits that were made anew since", "error", err)
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
