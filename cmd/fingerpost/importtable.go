package main

import (
	"fmt"
	"os"
	"strings"

	"fingerpost/api/transfer"
	"fingerpost/api/transfer/table"
	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/configsrc/folder"
	"fingerpost/resolver/catalog"
)

// readTable makes the files of a table's projects. Names that other files of the folder have are problems of the table,
// with its lines.
func readTable(t cli.Terminal, dir string, f *importFlags) (*transfer.Import, error) {
	in, from := t.In, "stdin"
	if f.csv != "-" {
		file, err := os.Open(f.csv)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in, from = file, f.csv
	}
	rows, err := table.Read(in, table.Options{SlugFromName: f.slugFrom == "name"})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", from, err)
	}
	checked, err := checkTarget(t, dir)
	if err != nil {
		return nil, err
	}
	written := map[string]bool{}       // files of the folder that the import writes itself
	known := map[string]catalog.UUID{} // of the projects in them, by slug: the same table again changes nothing
	for _, p := range rows.Projects {
		written[p.Project.Slug+".hcl"] = true
	}
	for i := range checked.Files {
		if other := &checked.Files[i]; !written[other.Path] {
			rows.Against(other.Display, other.Declared)
		} else if other.Declared != nil {
			for j := range other.Declared.Projects {
				p := &other.Declared.Projects[j].Project
				known[p.Slug] = p.UUID
			}
		}
	}
	im := transfer.NewImport(defaultsOf(checked), folder.MaxFileBytes)
	made := t.Progress("projects made")
	defer made.End()
	for i, p := range rows.Projects {
		if !p.Bad {
			uuid, there := known[p.Project.Slug]
			if !there {
				uuid = catalog.NewUUID()
			}
			im.Add(fmt.Sprintf("%s: line %d", from, p.Line), uuid, p.Project, p.Domains)
		}
		made.Set(i+1, len(rows.Projects))
	}
	var problems []string
	for _, p := range rows.Problems {
		problems = append(problems, from+": "+p.String())
	}
	im.Problems = append(problems, im.Problems...)
	if len(rows.Labels) > 0 { // people see a misspelt column here
		fmt.Fprintf(t.Err, "labels: %s\n", strings.Join(rows.Labels, ", "))
	}
	return im, nil
}
