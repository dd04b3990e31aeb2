package names

import (
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// A Store has what is accepted; *resolver.Resolver implements it.
type Store interface {
	Declared
	// File returns one row of the file table; a NOT_FOUND *catalog.Error if there is none.
	File(path string) (*catalog.FileRow, error)
	// LastGood returns the last accepted bytes of a file.
	LastGood(path string) ([]byte, error)
	// UnknownSlugs lists the slugs in lists of a catalog.ListHolder that no project has. The list must not be changed.
	UnknownSlugs() []catalog.UnknownSlug
}

// Warnings are those about accepted files that follow from names in other files: wildcards above names of other projects,
// and slugs that no project has. They are not safe for concurrent use.
type Warnings struct {
	store       Store
	owner       Owner
	display     func(path string) string
	log         func(hclfile.Diagnostic)
	overlaps    map[string]*overlap      // by wildcard
	overlapping map[string]int           // number of overlaps by file
	unknown     map[string]*unknownSlugs // by file
}

// An Owner finds the accepted file that declares a "domain", "key", "webhook", "login", "inbound" or "slug", and the
// hash of its content.
type Owner func(what, name string) (path string, hash [32]byte, declared bool)

// NewWarnings returns Warnings that know of no file. display returns a path as messages name it; log is called with each
// new warning.
func NewWarnings(s Store, o Owner, display func(path string) string, log func(hclfile.Diagnostic)) *Warnings {
	return &Warnings{store: s, owner: o, display: display, log: log, overlaps: map[string]*overlap{},
		overlapping: map[string]int{}}
}

// Overlaps reports whether a file has a wildcard above names of other projects.
func (w *Warnings) Overlaps(path string) bool { return w.overlapping[path] > 0 }

// All brings the warnings about slugs up to date, and adds all warnings to a list.
func (w *Warnings) All(list hclfile.Diagnostics) hclfile.Diagnostics {
	w.noteUnknown()
	for _, u := range w.unknown {
		list = append(list, u.diags...)
	}
	for _, o := range w.overlaps {
		list = append(list, o.diag)
	}
	return list
}
