package transfer

import (
	"slices"

	"fingerpost/api/client"
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// A Document is what "plan --json" prints.
type Document struct {
	Valid   bool   `json:"valid"`
	Changed bool   `json:"changed"`
	Against string `json:"against"`
	Summary Tally  `json:"summary"`
	Plan
	Diagnostics hclfile.Diagnostics `json:"diagnostics"`
}

// NewDocument returns a Document without changes.
func NewDocument(against string) Document {
	return Document{Against: against, Plan: NewPlan(), Diagnostics: hclfile.Diagnostics{}}
}

// Complete sets what follows from the changes.
func (d *Document) Complete() {
	d.Valid, d.Summary, d.Changed = true, TallyOf(d.Changes), len(d.Changes) > 0
}

// PlanFiles compares the declarations of some files before and after a change. defaults are those in force, for files
// that do not declare them. It takes ownership of the declarations.
func PlanFiles(was, is []*catalog.Declared, defaults *catalog.Defaults) Document {
	d := NewDocument("the files")
	have, want := treeWith(was, defaults), treeWith(is, defaults)
	byUUID := map[catalog.UUID]*catalog.ProjectConfig{}
	var haves []catalog.Project
	for _, p := range have.Projects {
		byUUID[p.Project.UUID] = p
		haves = append(haves, p.Project)
	}
	for _, pair := range pairUp(haves, want.Projects) {
		var had *client.Project
		if pair.have != nil {
			had = &client.Project{ProjectConfig: *byUUID[pair.have.UUID], Mail: true}
		}
		changes, _ := compareProject(had, pair.want, everything)
		d.Changes = append(d.Changes, changes...)
	}
	rest, _ := compareRest(have.rest(), want.rest(), everything)
	d.Changes = append(d.Changes, rest...)
	d.Complete()
	return d
}

func treeWith(files []*catalog.Declared, defaults *catalog.Defaults) *Tree {
	if defaults != nil && !slices.ContainsFunc(files, func(f *catalog.Declared) bool { return f.Defaults != nil }) {
		files = append(slices.Clip(files), &catalog.Declared{Defaults: defaults})
	}
	return NewTree(files)
}
