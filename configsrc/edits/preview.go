package edits

import (
	"fingerpost/configsrc/compare"
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// A Preview is what a write would change. Its contents must not be changed; Before and After contain the files' secrets
// as they stand there, Diff does not.
type Preview struct {
	Files []compare.File // in the order in which the write would put them in place; empty: nothing changes
	// Was and Is are the declarations of the config files concerned, before and after. A key that is limited to projects
	// does not get the keys and edges among them.
	Was, Is []*catalog.Declared
	// not nil: the warnings that the change would bring, with paths relative to the config folder
	Problems hclfile.Diagnostics
}

// addDeclared adds a file's declarations, as copies.
func (p *Preview) addDeclared(was, is *catalog.Declared) {
	if was != nil {
		p.Was = append(p.Was, was.Clone())
	}
	if is != nil {
		p.Is = append(p.Is, is.Clone())
	}
}

// declaresMore reports whether a file declares anything next to one project.
func declaresMore(d *catalog.Declared) bool {
	return d != nil && (len(d.Projects)+d.Shared() > 1 || d.Defaults != nil || d.Sealing != nil)
}

// hasLists reports whether a file declares anything with a list of projects.
func hasLists(d *catalog.Declared) bool {
	return len(d.Keys)+len(d.Webhooks)+len(d.Logins)+len(d.Inbounds) > 0
}

// Diff returns the change as a unified diff, with paths relative to the config folder, "" if nothing changes. A sealed
// secret is shown as sealed("…"), any other secret and a key's hash as (redacted). A key that is limited to projects
// sees no line that belongs to another one.
func (p *Preview) Diff() string { return compare.Diff(p.Files) }

// An Outcome is what has become of an edit.
type Outcome struct {
	Preview *Preview // of a dry run; nil: the edit was made
	ID      int64    // of the write in the Journal; 0: there is no Journal, or nothing has changed
	// the files that were changed, created or removed, slash-separated below the config folder, links resolved
	Paths []string
}
