package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"fingerpost/configsrc/gitrepo/plumbing"
	"fingerpost/resolver/catalog"
)

// A scratch is a commit in the making: the content of the files that change, on top of a tree.
type scratch struct {
	r    *Repo
	tree string
	old  map[string]plumbing.Entry // of the tree, by path in the repository
	was  map[string][]byte         // its content
	now  map[string][]byte

	trees map[string][]plumbing.TreeEntry // that were read, by id: many files are in one folder
}

func newScratch(r *Repo, tree string) *scratch {
	return &scratch{r: r, tree: tree, old: map[string]plumbing.Entry{}, was: map[string][]byte{}, now: map[string][]byte{},
		trees: map[string][]plumbing.TreeEntry{}}
}

func (s *scratch) readTree(id string) (list []plumbing.TreeEntry, err error) {
	list, known := s.trees[id]
	if !known {
		if list, err = s.r.git.Tree(id); err == nil {
			s.trees[id] = list
		}
	}
	return list, err
}

// load reads a file of the tree, unless it is known.
func (s *scratch) load(path string) error {
	if _, known := s.old[path]; known {
		return nil
	}
	e, err := plumbing.Entry{}, error(nil)
	if s.tree != "" {
		if e, err = plumbing.Find(s.readTree, s.tree, path); err != nil {
			return err
		}
	}
	b, err := s.r.git.Blob(e)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	s.old[path], s.was[path], s.now[path] = e, b, b
	return nil
}

// apply makes the edit of a write, all of its files or none. A *waits error means that the edit does not fit.
func (s *scratch) apply(ctx context.Context, w *pendingWrite, force bool) error {
	next := map[string][]byte{}
	for _, f := range w.Files {
		path := s.r.prefix + f.Path
		if err := s.load(path); err != nil {
			return err
		}
		before, after := f.Before, f.After
		if theirs := s.now[path]; theirs != nil && !bytes.Contains(theirs, crlf) { // git keeps line ends as LF
			before, after = unixLines(before), unixLines(after)
		}
		if err := s.r.refuseFilter(ctx, f.Path); err != nil {
			if f.After != nil {
				return &waits{f.Path, err}
			}
			next[path] = nil // the history has other bytes than the file, so it is removed as a whole
			continue
		}
		merged, err := s.r.o.Merge(f.Path, before, after, s.now[path], force)
		if err != nil {
			return &waits{f.Path, err}
		}
		next[path] = merged
	}
	for path, content := range next {
		s.now[path] = content
	}
	return nil
}

// clashes is what does not fit of the edits of several files.
type clashes struct {
	reasons []string
	fields  []catalog.Clash // those that are known field by field
}

// applyEach makes the edits of files, each that fits.
func (s *scratch) applyEach(ctx context.Context, files []catalog.FileEdit, force bool) (c clashes, err error) {
	for _, f := range files {
		err := s.apply(ctx, &pendingWrite{FileWrite: catalog.FileWrite{Files: []catalog.FileEdit{f}}}, force)
		late, clash := (*waits)(nil), fieldClash(nil)
		switch {
		case errors.As(err, &late):
			c.reasons = append(c.reasons, late.err.Error())
		case err != nil:
			return c, err
		}
		if late != nil && errors.As(late.err, &clash) {
			c.fields = append(c.fields, clash.Clashes()...)
		}
	}
	return c, nil
}

// A fieldClash is an error of Options.Merge that knows the fields that do not fit.
type fieldClash interface {
	error
	Clashes() []catalog.Clash
}

var crlf = []byte("\r\n")

func unixLines(b []byte) []byte {
	if !bytes.Contains(b, crlf) {
		return b
	}
	return bytes.ReplaceAll(b, crlf, crlf[1:])
}

// changes stores the new contents and returns their entries.
func (s *scratch) changes(ctx context.Context) (map[string]plumbing.Entry, error) {
	changes, contents := map[string]plumbing.Entry{}, map[string][]byte{}
	for path, content := range s.now {
		old := s.old[path]
		switch {
		case content == nil && old.ID == "":
		case content == nil:
			changes[path] = plumbing.Entry{}
		case old.ID != "" && bytes.Equal(content, s.was[path]):
		default:
			contents[path] = content
		}
	}
	ids, err := s.r.git.WriteBlobs(ctx, contents)
	if err != nil {
		return nil, err
	}
	for path, id := range ids {
		e := plumbing.Entry{Mode: plumbing.ModeFile, ID: id}
		if s.old[path].Mode == "100755" {
			e.Mode = "100755"
		}
		if e != s.old[path] {
			changes[path] = e
		}
	}
	return changes, nil
}
