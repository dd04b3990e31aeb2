package configsrc

import (
	"cmp"

	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/judge"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/trace"
)

// An update is one write: the new content of a file, and of further files that change with it.
type update struct {
	c       *judge.Candidate // the new content, decoded; gone: the file is to be removed
	was     *judge.Content   // the replaced content; empty for a new file
	file    *fileSwap        // of the file
	stays   bool             // the file itself stays as it is: only others change
	files   []*fileSwap      // the files to be put in place, in this order: texts, lists, the project's file last
	removes catalog.UUID     // the project to be removed, zero for none
	project int64            // id of the written project, zero for a new one
	moves   *slugMove        // nil: the project's slug stays
	loser   *loser           // of a domain, in the same file; nil: none
	bulk    bulkChange       // of several projects
	notes   domainNotes      // about the domains that come or go
	permit  func() error     // of a change of keys or webhooks; nil: nothing is asked
	edit    *catalog.Edit
	dry     *Preview // of a dry run, filled in once it is judged; nil: a write
}

// A submission is an update on its way into the files. submit stages it next to the files and passes it to the goroutine
// that looks. That goroutine puts a round of submissions in place, with one sync of each folder and one Apply for all
// of them.
type submission struct {
	*update
	changed   []*judge.Candidate   // the config files of the update, in path order
	had       map[judge.Claim]bool // claims of the replaced content
	domains   []string             // the domains that the replaced content does not declare
	undo      string               // of a running write to several files, see atomicfile.Note
	journaled *catalog.FileWrite   // in the Journal; nil: there is none
	published bool                 // the Journal knows that the write was made
	done      chan error
	span      *trace.Span // of the request; nil: it is not traced
}

// A fileSwap is new content for one file of an update.
type fileSwap struct {
	atomicfile.Swap
	path  string           // of the target, links resolved, slash-separated below the config folder
	c     *judge.Candidate // what a config file then declares; nil for text that a template takes by file()
	had   []byte           // the replaced content; nil for a new file
	stamp catalog.Stamp
}

// A slugMove is the change of a project's slug by a write. The lists of others that name the slug
// change in the same write: their files are exchanged first and the project's file last, so that a list never names a slug that another project
// may have taken. After a crash in between, the note of the write undoes it (atomicfile.Note).
type slugMove struct {
	from, to string   // to is "" if the project is removed
	files    []string // files that were searched for lists, without the project's own file
}

// A loser is the project that a take-over takes a domain from.
type loser struct {
	at   int // index in its file
	left catalog.ProjectConfig
	by   *catalog.Author
}

// A bulkChange is the projects of a bulk write, of all its files, before and after it.
type bulkChange struct{ was, is catalog.Declared }

// domainNotes are the notes about names of a project that come or go with a write, see names.NotesOf. They are made
// before the files change: a note of a record that does not exist says nothing, and a record without its note would be
// free.
type domainNotes struct {
	project catalog.UUID
	had, is map[string]string
}

// newSubmission fills in what is to be judged.
func newSubmission(of *update) *submission {
	u := &submission{update: of, had: judge.SetOf(of.was.Claims), changed: []*judge.Candidate{of.c}, done: make(chan error, 1)}
	for _, ref := range u.c.Refs {
		if ref.Kind == catalog.KindDomain && !u.had[judge.ClaimOf("domain", ref.Name)] {
			u.domains = append(u.domains, ref.Name)
		}
	}
	for _, f := range u.files {
		if f.c != nil && f.c != u.c {
			u.changed = append(u.changed, f.c)
		}
	}
	for _, c := range u.changed {
		if c.By == nil {
			c.By = &u.edit.By
		}
	}
	judge.SortByPath(u.changed)
	return u
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

// answer returns one result to several writers.
func answer(updates []*submission, err error) {
	for _, u := range updates {
		u.done <- err
	}
}
