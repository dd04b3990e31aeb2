package main

import (
	"fmt"

	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/seal"
	"fingerpost/resolver/catalog"
)

// reseal opens every sealed value first, so that it writes nothing if one cannot be opened.
func reseal(t cli.Terminal, dir, keyFile string) error {
	checked, err := checkSound(dir, "sealed values")
	if err != nil {
		return err
	}
	recipients, err := recipientsOf(checked)
	if err != nil {
		return err
	}
	ids, err := seal.Load(keyFile)
	if err != nil {
		return err
	}
	edits := map[string][]func(src []byte) ([]byte, error){} // by path
	n := 0
	for i := range checked.Files {
		f := &checked.Files[i]
		for v := range seal.Values(f.Declared) {
			plain, err := ids.Open(v.Context, v.Text)
			if err != nil {
				return fmt.Errorf("open %s of %s in %s: %w", v.Attr, v.Owner, f.Display, err)
			}
			sealed, err := seal.Seal(recipients, v.Context, plain)
			if err != nil {
				return err
			}
			edits[f.Path] = append(edits[f.Path], func(src []byte) ([]byte, error) {
				return hcledit.ReplaceSealed(src, v.Text, sealed)
			})
			n++
		}
	}
	for path, list := range edits {
		err := atomicfile.Edit(dir, path, func(src []byte) (_ []byte, err error) {
			for _, edit := range list {
				if src, err = edit(src); err != nil {
					return nil, err
				}
			}
			return src, nil
		})
		if err != nil {
			return err
		}
	}
	fmt.Fprintf(t.Err, "%s sealed anew for %s\n", catalog.Count(n, "value"), catalog.Count(len(recipients), "recipient"))
	return nil
}
