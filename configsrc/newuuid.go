package configsrc

import (
	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/hcledit"
	"fingerpost/resolver/catalog"
)

// nameNew replaces uuid = "new" by a random uuid in each such project's file, and reads the file again. If the folder
// is read-only, such a project has the identity of its slug until a node that can write has replaced the word.
func (s *Source) nameNew(t *folder.Tree, candidates []*candidate) {
	if s.o.ReadOnly {
		return
	}
	for i, c := range candidates {
		if len(c.fresh) == 0 || c.diags.HasErrors() {
			continue
		}
		err := s.folder.Edit(c.path, func(src []byte) ([]byte, error) {
			var err error
			for _, slug := range c.fresh {
				expr := hcledit.Quote(catalog.NewUUID().String())
				if src, err = hcledit.SetAttribute(src, hcledit.BlockPath{"project", slug}, "uuid", expr); err != nil {
					return nil, err
				}
			}
			return src, nil
		})
		if err != nil {
			s.o.Logger.Warn("uuid = \"new\" cannot be replaced in the file", "file", s.display(c.path), "error", err)
			continue
		}
		if e, _, ok := t.Stat(c.path); ok {
			if again := s.examineOne(t, e, c.prev); again != nil {
				candidates[i] = again
			}
		}
	}
}
