package edits

import (
	"cmp"
	"slices"
	"strings"

	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/judge"
	"fingerpost/configsrc/names"
	"fingerpost/resolver/catalog"
)

// An Update is one write: the new content of a file, and of further files that change with it. Nothing of it is in a
// file yet.
type Update struct {
	Is      *judge.Candidate   // the new content, decoded; gone: the file is to be removed
	Was     *judge.Content     // the replaced content; empty for a new file
	File    *Swap              // of the file
	Stays   bool               // the file itself stays as it is: only others change
	Files   []*Swap            // the files to be put in place, in this order: texts, lists, the project's file last
	Changed []*judge.Candidate // the config files of the update, in path order
	Preview *Preview           // of a dry run, filled in by Describe; nil: a write

	removes catalog.UUID         // the project to be removed, zero for none
	project int64                // id of the written project, zero for a new one
	moves   *slugMove            // nil: the project's slug stays
	loser   *loser               // of a domain, in the same file; nil: none
	bulk    bulkChange           // of several projects
	notes   DomainNotes          // about the domains that come or go
	permit  func() error         // of a change of keys or webhooks; nil: nothing is asked
	had     map[judge.Claim]bool // claims of the replaced content
	domains []string             // the domains that the replaced content does not declare
	edit    *catalog.Edit
}

// A Swap is new content for one file of an Update.
type Swap struct {
	atomicfile.Swap
	Path   string           // of the target, links resolved, slash-separated below the config folder
	Config *judge.Candidate // what a config file then declares; nil for text that a template takes by file()
	Had    []byte           // the replaced content; nil for a new file
	Stamp  catalog.Stamp
}

// A slugMove is the change of a project's slug by a write. The lists of others that name the slug
// change in the same write: their files are exchanged first and the project's file last, so that a list never names a
// slug that another project may have taken. After a crash in between, the note of the write undoes it
// (atomicfile.Note).
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

// DomainNotes are the notes about names of a project that come or go with a write, see names.NotesOf. They are made
// before the files change: a note of a record that does not exist says nothing, and a record without its note would be
// free.
type DomainNotes struct {
	Project catalog.UUID
	Had, Is map[string]string
}

// prepare fills in what is to be judged.
func (u *Update) prepare() {
	u.had, u.Changed = judge.SetOf(u.Was.Claims), []*judge.Candidate{u.Is}
	for _, ref := range u.Is.Refs {
		if ref.Kind == catalog.KindDomain && !u.had[judge.ClaimOf("domain", ref.Name)] {
			u.domains = append(u.domains, ref.Name)
		}
	}
	for _, f := range u.Files {
		if f.Config != nil && f.Config != u.Is {
			u.Changed = append(u.Changed, f.Config)
		}
	}
	for _, c := range u.Changed {
		if c.By == nil {
			c.By = &u.edit.By
		}
	}
	judge.SortByPath(u.Changed)
}

// FileWrite describes an Update, without its trace.
func (u *Update) FileWrite() *catalog.FileWrite {
	w := &catalog.FileWrite{Author: u.edit.By, Message: u.edit.Message, Subject: u.subject()}
	for _, f := range u.Files {
		edit := catalog.FileEdit{Path: f.Path, Before: f.Had, After: f.Content}
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
func (u *Update) subject() string {
	if u.bulk.is.Projects != nil {
		return hcledit.Subject(&u.bulk.was, &u.bulk.is)
	}
	var was, is catalog.Declared
	if u.Was.Declared != nil {
		was = *u.Was.Declared
	}
	for _, c := range u.Changed {
		if c.Declared == nil {
			continue
		}
		if c == u.Is || u.Is == nil {
			is = *c.Declared
		}
	}
	return cmp.Or(hcledit.Subject(&was, &is), "files of "+u.Is.Path)
}

// Clashes reports whether an earlier update of the round touches the same objects, or a domain above or below one that
// this update adds. Otherwise it adds the update's own claims to taken.
func (u *Update) Clashes(taken map[judge.Claim]bool) bool {
	claims := slices.Clone(u.Was.Claims)
	for _, c := range u.Changed {
		claims = append(claims, c.Claims...)
	}
	if u.permit != nil { // it must see the keys as the update before has left them
		claims = append(claims, keysClaim)
	}
	clash := slices.ContainsFunc(claims, func(c judge.Claim) bool { return taken[c] })
	for _, name := range u.domains {
		suffix, wildcard := strings.CutPrefix(name, "*.")
		clash = clash || wildcard && taken[aboveClaim(suffix)]
		for wildcard := range names.Above(name) {
			clash = clash || taken[judge.ClaimOf("domain", wildcard)]
			claims = append(claims, aboveClaim(wildcard[len("*."):]))
		}
	}
	if !clash {
		for _, c := range claims {
			taken[c] = true
		}
	}
	return clash
}

// keysClaim is the claim to change keys.
var keysClaim = judge.ClaimOf("keys", "")

// aboveClaim is the claim to all names below a suffix.
func aboveClaim(suffix string) judge.Claim { return judge.ClaimOf("below", suffix) }
