package configsrc

import (
	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/hcledit"
	"fingerpost/configsrc/judge"
	"fingerpost/resolver/catalog"
)

// nameNew replaces uuid = "new" by a random uuid in each such project's file, and reads the file again. If the folder
// is read-only, such a project has the identity of its slug until a node that can write has replaced the word.
func (a *amender) nameNew(t *folder.Tree, candidates []*judge.Candidate) {
	if a.o.ReadOnly {
		return
	}
	for i, c := range candidates {
		if len(c.Fresh) == 0 || c.Diags.HasErrors() {
			continue
		}
		again, err := a.amend(t, c, "a uuid of its own instead of \"new\"", func(src []byte) (_ []byte, err error) {
			for _, slug := range c.Fresh {
				expr := hcledit.Quote(catalog.NewUUID().String())
				if src, err = hcledit.SetAttribute(src, hcledit.BlockPath{"project", slug}, "uuid", expr); err != nil {
					return nil, err
				}
			}
			return src, nil
		})
		switch {
		case err != nil:
			a.o.Logger.Warn("uuid = \"new\" cannot be replaced in the file", "file", a.Display(c.Path), "error", err)
		case again != nil:
			candidates[i] = again
		}
	}
}
