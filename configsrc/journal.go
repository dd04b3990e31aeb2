package configsrc

import (
	"cmp"
	"context"

	"fingerpost/configsrc/hcledit"
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

// note puts an update into the Journal, while the caller stages its files: both wait for a disk. The channel gives the
// result, once.
func (s *Source) note(u *submission) (noted chan error) {
	noted = make(chan error, 1)
	if s.o.Journal == nil || u.dry != nil {
		close(noted)
		return noted
	}
	w := u.fileWrite()
	go func() {
		span := u.span.Child("ledger.sync")
		err := s.o.Journal.Begin(w)
		span.EndWith(err)
		if err == nil {
			u.journaled = w
		}
		noted <- err
		close(noted)
	}()
	return noted
}

// fileWrite describes an update.
func (u *submission) fileWrite() *catalog.FileWrite {
	w := &catalog.FileWrite{Author: u.edit.By, Message: u.edit.Message, Subject: u.subject()}
	if u.span != nil {
		w.Trace = u.span.ID().Parent()
	}
	for _, f := range u.files {
		edit := catalog.FileEdit{Path: f.path, Before: f.had, After: f.Content}
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

// dropNote takes an update that was not made out of the Journal.
func (s *Source) dropNote(u *submission, noted chan error) {
	for range noted { // waits for Begin
	}
	if u.journaled != nil && !u.published {
		s.o.Journal.End(u.journaled, false)
	}
}

// endNotes says in the Journal that a round of writes is made: the files are changed.
func (s *Source) endNotes(round []*submission) {
	for _, u := range round {
		if u.journaled != nil {
			u.journaled.Generation = s.o.Sink.Generation()
			u.published = true
			s.o.Journal.End(u.journaled, true)
		}
	}
}

// GitTurn runs f, which works in git's folder, while no write replaces a file, see gitGuard.takeTurn.
func (s *Source) GitTurn(f func() error) error { return s.git.takeTurn(f) }

// PatientGitTurn is GitTurn for a call that a client waits for: it waits as long for somebody's git as a write does.
func (s *Source) PatientGitTurn(ctx context.Context, f func() error) error {
	return s.git.patient(ctx, func(context.Context) error { return s.git.takeTurn(f) })
}

// subject says in one line what an update changes.
func (u *submission) subject() string {
	if u.bulk.is.Projects != nil {
		return hcledit.Subject(&u.bulk.was, &u.bulk.is)
	}
	var was, is catalog.Declared
	if u.was.Declared != nil {
		was = *u.was.Declared
	}
	for _, c := range u.changed {
		if c.Declared == nil {
			continue
		}
		if c == u.c || u.c == nil {
			is = *c.Declared
		}
	}
	return cmp.Or(hcledit.Subject(&was, &is), "files of "+u.c.Path)
}
