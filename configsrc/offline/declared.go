package offline

import (
	"iter"

	"fingerpost/configsrc"
	"fingerpost/resolver/catalog"
)

// Declarations returns what each file declares, in path order.
func (c *Checked) Declarations() (all []*catalog.Declared) {
	for i := range c.Files {
		all = append(all, c.Files[i].Declared)
	}
	return all
}

// Projects yields all projects, each with its file.
func (c *Checked) Projects() iter.Seq2[*File, *catalog.ProjectConfig] {
	return func(yield func(*File, *catalog.ProjectConfig) bool) {
		for i := range c.Files {
			f := &c.Files[i]
			for j := range f.Declared.Projects {
				if !yield(f, &f.Declared.Projects[j]) {
					return
				}
			}
		}
	}
}

// Slugs returns the slugs of all projects.
func (c *Checked) Slugs() (slugs []string) {
	for _, p := range c.Projects() {
		slugs = append(slugs, p.Project.Slug)
	}
	return slugs
}

// AsKnown returns what a service knows that has loaded this folder, for Options.
func (c *Checked) AsKnown() configsrc.Known { return table{c} }

// A table is the file table of a service that has loaded a folder.
type table struct{ of *Checked }

// Files implements configsrc.Known.
func (t table) Files(yield func(path string, row *catalog.FileRow) bool) error {
	for i := range t.of.Files {
		f := &t.of.Files[i]
		if !yield(f.Path, &catalog.FileRow{Refs: f.Declared.Refs()}) {
			break
		}
	}
	return nil
}

// File implements configsrc.Known.
func (t table) File(path string) (*catalog.FileRow, error) {
	for i := range t.of.Files {
		if f := &t.of.Files[i]; f.Path == path {
			return &catalog.FileRow{Refs: f.Declared.Refs()}, nil
		}
	}
	return nil, &catalog.Error{Code: catalog.CodeNotFound, Message: "no such file"}
}
