package main

import (
	"fmt"
	"iter"

	"fingerpost/configsrc"
	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/seal"
	"fingerpost/resolver/catalog"
)

// reseal opens every sealed value first, so that it writes nothing if one cannot be opened.
func reseal(t terminal, dir, keyFile string) error {
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
	for f, v := range sealedIn(checked) {
		plain, err := ids.Open(v.context, v.text)
		if err != nil {
			return fmt.Errorf("open %s of %s in %s: %w", v.attr, v.owner, f.Display, err)
		}
		sealed, err := seal.Seal(recipients, v.context, plain)
		if err != nil {
			return err
		}
		edits[f.Path] = append(edits[f.Path], func(src []byte) ([]byte, error) {
			return hcledit.SetAttribute(src, v.block, v.attr, "sealed("+hcledit.Quote(sealed)+")")
		})
		n++
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
	fmt.Fprintf(t.err, "%s sealed anew for %s\n", count(n, "value"), count(len(recipients), "recipient"))
	return nil
}

// A sealedValue is one sealed() of a file.
type sealedValue struct {
	owner         string // in messages
	block         hcledit.BlockPath
	attr, context string
	text          string
}

// sealedIn yields all sealed values, each with its file.
func sealedIn(checked *configsrc.Checked) iter.Seq2[*configsrc.CheckedFile, sealedValue] {
	return func(yield func(*configsrc.CheckedFile, sealedValue) bool) {
		for i := range checked.Files {
			f := &checked.Files[i]
			if d := f.Declared.Defaults; d != nil && d.SMTP != nil && d.SMTP.Password.Source == catalog.SecretSealed {
				v := sealedValue{"the defaults block", hcledit.BlockPath{"defaults", "smtp_config"}, "password", relayContext(),
					d.SMTP.Password.Ref}
				if !yield(f, v) {
					return
				}
			}
		}
		for f, p := range projectsOf(checked) {
			for _, field := range secretFields {
				secret, slug := field.of(p), p.Project.Slug
				if secret.Source != catalog.SecretSealed {
					continue
				}
				v := sealedValue{fmt.Sprintf("project %q", slug), hcledit.BlockPath{"project", slug, field.block}, field.attr,
					seal.Context(p.Project.UUID, field.attr), secret.Ref}
				if !yield(f, v) {
					return
				}
			}
		}
	}
}
