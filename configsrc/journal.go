package configsrc

import (
	"cmp"
	"path/filepath"

	"fingerpost/resolver/catalog"
)

// A Journal keeps API writes from before their files are replaced until they are in a git commit, so that a crash in
// between loses no author. Its methods may be called from any goroutine.
type Journal interface {
	// Begin notes a write and sets its ID. When it returns nil, the note is durable. An error refuses the write.
	Begin(w *catalog.FileWrite) error
	// End says whether the write of a Begin was made. Writes to one file end in the order in which they were made.
	End(w *catalog.FileWrite, made bool)
}

// keep notes an update in the Journal, while the caller stages its files: both wait for a disk. The channel gives the
// result, once.
func (s *Source) keep(u *update) (kept chan error) {
	kept = make(chan error, 1)
	if s.o.Journal == nil || u.dry != nil {
		close(kept)
		return kept
	}
	root, err := s.realDir()
	w := u.fileWrite(func(f *fileSwap) string {
		if rel, relErr := filepath.Rel(root, f.Target); err == nil && relErr == nil {
			return filepath.ToSlash(rel)
		}
		return f.Name
	})
	go func() {
		err := s.o.Journal.Begin(w)
		if err == nil {
			u.note = w
		}
		kept <- err
		close(kept)
	}()
	return kept
}

// fileWrite describes an update. pathOf returns the path of a file without links.
func (u *update) fileWrite(pathOf func(f *fileSwap) string) *catalog.FileWrite {
	w := &catalog.FileWrite{Author: *u.by.author.audited(), Message: u.by.author.Message, Subject: u.subject()}
	for _, f := range u.files {
		edit := catalog.FileEdit{Path: pathOf(f), Before: f.had, After: f.Content}
		switch {
		case f.Removes:
			edit.After = nil
		case edit.After == nil:
			edit.After = []byte{}
		}
		w.Files = append(w.Files, edit)
	}
	return w
}

// release ends what keep has begun.
func (s *Source) release(u *update, kept chan error) {
	for range kept { // waits for Begin
	}
	switch {
	case u.note == nil:
	case !u.noted:
		s.o.Journal.End(u.note, false)
	case u.by.author.Noted != nil:
		u.by.author.Noted(u.note.ID)
	}
}

// GitTurn runs f, which works in the git folder of the checkout, while no write replaces a file. The writes that follow
// do not take its traces for a person's git. f must hold git's index.lock while it changes refs or the index, so that
// no other git can do so meanwhile. If another git is at work, f does not run, and the error is an UNAVAILABLE
// *catalog.Error.
func (s *Source) GitTurn(f func() error) error {
	s.gitTurn.Lock()
	defer s.gitTurn.Unlock()
	if git := s.gitNow(); git.working() {
		return git.refusal()
	}
	err := f()
	s.ownGit.Store(0)
	if now := s.gitNow(); !now.locked && now.unfinished == "" {
		s.ownGit.Store(now.touched)
	}
	return err
}

// subject says in one line what an update changes.
func (u *update) subject() string {
	var was, is catalog.Declared
	if u.was.declared != nil {
		was = *u.was.declared
	}
	for _, c := range u.changed {
		if c.declared == nil {
			continue
		}
		if c == u.c || u.c == nil {
			is = *c.declared
		}
	}
	return cmp.Or(Subject(&was, &is), "files of "+u.c.path)
}
