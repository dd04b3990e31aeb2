package main

import (
	"cmp"

	"fingerpost/api/transfer"
	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/configsrc"
	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/offline"
	"fingerpost/resolver/catalog"
)

// loadTree reads the config folder. If the files have errors it prints them, and the exit code is 1. With asJSON it
// prints document, after it has put them into diagnostics, which is a part of document.
func loadTree(t cli.Terminal, dir string, allow catalog.Allows, asJSON bool, document any,
	diagnostics *hclfile.Diagnostics) (*transfer.Tree, error) {
	checked, err := checkTree(t, dir, nil, allow, asJSON, document, diagnostics)
	if err != nil {
		return nil, err
	}
	return transfer.NewTree(checked.Declarations()), nil
}

// checkTree is loadTree for the files one by one, checked as by a server that knows others; nil: none.
func checkTree(t cli.Terminal, dir string, known configsrc.Known, allow catalog.Allows, asJSON bool, document any,
	diagnostics *hclfile.Diagnostics) (*offline.Checked, error) {
	checked, err := checkFiles(t, dir, known, allow)
	switch {
	case err != nil:
		return nil, err
	case !checked.Problems.HasErrors():
		return checked, nil
	case asJSON:
		*diagnostics = checked.Problems
		err = cli.PrintJSON(t.Out, document)
	default:
		err = checked.Problems.WriteText(t.Err, colour(t.Err))
	}
	return nil, cmp.Or(err,
		cli.No(`the files have errors, so nothing was compared or sent: put them right, see "fingerpost validate"`))
}

// checkSound loads the files for a command that has to see all of what it looks for.
func checkSound(dir, what string) (*offline.Checked, error) {
	checked, err := offline.Check(dir)
	if err != nil {
		return nil, err
	}
	if checked.Problems.HasErrors() {
		return nil, cli.No(`%s has errors, and %s might be missed: run "fingerpost validate" first`, dir, what)
	}
	return checked, nil
}
