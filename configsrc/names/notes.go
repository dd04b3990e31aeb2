package names

import (
	"fmt"

	"fingerpost/resolver/catalog"
)

// Notes keeps small values by name, durably; *resolver.Resolver implements it.
type Notes interface {
	Named(name string) (value []byte, found bool, err error)
}

// What is noted of a name in a project, because the files do not have it.
const (
	NoteByKey = "by-key" // a key that is limited to projects made the pending record
	// Such a key took the name out while the record was pending, or lost: if one puts it back, it is that again.
	NotePending = catalog.VerifiedPending
	NoteLost    = catalog.VerifiedLost // as NotePending
)

// NoteName is the name of the note of a domain in a project.
func NoteName(project catalog.UUID, domain string) string {
	return "domain-record/" + project.String() + "/" + domain
}

// Noted returns the note of a domain in a project, "" if there is none.
func Noted(notes Notes, project catalog.UUID, domain string) (string, error) {
	value, _, err := notes.Named(NoteName(project, domain))
	if err != nil {
		return "", fmt.Errorf("read what is known of a domain's record: %w", err)
	}
	return string(value), nil
}

// NotesOf returns what a change of a project's domains, by a key that is limited to projects, makes of the notes of names
// that come or go; "" for a note that goes. had are the notes of these names.
func NotesOf(was, is []catalog.Domain, had map[string]string, defaults *catalog.Defaults) map[string]string {
	notes := map[string]string{}
	note := func(name, value string) {
		if had[name] != value {
			notes[name] = value
		}
	}
	for i := range is {
		d := &is[i]
		if named(was, d.Name) == nil && had[d.Name] == "" && d.Verified != nil && *d.Verified == catalog.VerifiedPending {
			note(d.Name, NoteByKey)
		}
	}
	for i := range was {
		d := &was[i]
		switch {
		case named(is, d.Name) != nil:
		case d.Verified != nil && *d.Verified == catalog.VerifiedLost:
			note(d.Name, NoteLost)
		case d.Verified != nil && *d.Verified == catalog.VerifiedPending && !defaults.Requires():
			note(d.Name, NotePending) // else every new name of such a key is pending
		default:
			note(d.Name, "")
		}
	}
	return notes
}

// Moving lists the names that a change adds to a project or takes from it.
func Moving(was, is []catalog.Domain) (list []string) {
	for i := range is {
		if named(was, is[i].Name) == nil {
			list = append(list, is[i].Name)
		}
	}
	for i := range was {
		if named(is, was[i].Name) == nil {
			list = append(list, was[i].Name)
		}
	}
	return list
}

// Unproven reports whether a record holds up no key of another project: such a key made it, and it was never proven.
func Unproven(facts Declared, d *catalog.Domain) (bool, error) {
	if d.Verified == nil || *d.Verified != catalog.VerifiedPending {
		return false, nil
	}
	p, err := facts.ProjectByID(d.ProjectID)
	if err != nil {
		return false, err
	}
	note, err := Noted(facts, p.UUID, d.Name)
	return note == NoteByKey, err
}
