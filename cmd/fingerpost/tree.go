package main

import (
	"fingerpost/configsrc"
	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/transfer"
	"fingerpost/resolver/catalog"
)

// errInvalid ends a command that needs valid files. The exit code is 1: the files do not meet the command's condition.
var errInvalid = no(`the files have errors, so nothing was compared or sent: put them right, see "fingerpost validate"`)

// loadTree reads the config folder. Files with errors give errInvalid, and diagnostics that say why.
func loadTree(t terminal, dir string) (*transfer.Tree, hclfile.Diagnostics, error) {
	checked, err := t.check(dir, nil)
	if err != nil {
		return nil, nil, err
	}
	if checked.Problems.HasErrors() {
		return nil, checked.Problems, errInvalid
	}
	return treeOf(checked), nil, nil
}

func treeOf(checked *configsrc.Checked) *transfer.Tree {
	var files []*catalog.Declared
	for i := range checked.Files {
		files = append(files, checked.Files[i].Declared)
	}
	return transfer.NewTree(files)
}

// refuseInvalid prints the problems of the files and ends the command.
func refuseInvalid(t terminal, ds hclfile.Diagnostics, asJSON bool, document func(hclfile.Diagnostics) any) error {
	if asJSON {
		if err := printJSON(t.out, document(ds)); err != nil {
			return err
		}
	} else if err := ds.WriteText(t.err, colour(t.err)); err != nil {
		return err
	}
	return errInvalid
}
