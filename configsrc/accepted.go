package configsrc

import (
	"slices"

	"fingerpost/configsrc/judge"
	"fingerpost/resolver/catalog"
)

// The accepted tree is what the Sink keeps as bytes: the last good content of each config file, and the files that
// these name, as they were decoded with them. A cluster carries it to edges.

// textsOf lists the files that accepted candidates name with other content than before, and those that nothing names any
// more once the candidates are in the table.
func (s *base) textsOf(accepted []*judge.Candidate) (changes []catalog.TextChange) {
	var named []string // before
	now := map[string]bool{}
	isAccepted := make(map[string]bool, len(accepted))
	for _, c := range accepted {
		isAccepted[c.Path] = true
		for _, d := range c.Deps {
			if c.Gone || c.Touched {
				break
			}
			b, read := c.Texts[d.Path]
			if read && !now[d.Path] && (s.redecode || !s.hasDep(c.Prev, d)) {
				changes = append(changes, catalog.TextChange{Path: d.Path, Bytes: b})
			}
			now[d.Path] = true
		}
		if c.Prev != nil && !c.Touched {
			for _, d := range c.Prev.Deps {
				named = append(named, d.Path)
			}
		}
	}
	slices.Sort(named)
	for _, path := range slices.Compact(named) {
		used := now[path]
		for _, f := range s.Table.UsersOf(path) {
			used = used || !isAccepted[f.Path]
		}
		if !used {
			changes = append(changes, catalog.TextChange{Path: path, Gone: true})
		}
	}
	return changes
}

// hasDep reports whether an accepted file names a file with this content.
func (s *base) hasDep(f *judge.File, d catalog.Dep) bool {
	return f != nil && slices.ContainsFunc(f.Deps, func(old catalog.Dep) bool {
		return old.Path == d.Path &&
			old.Stamp.Hash == d.Stamp.Hash
	})
}

// treeChange returns what a change that the Sink has taken says of the accepted tree.
func (s *base) treeChange(change *catalog.Change) (c catalog.TreeChange) {
	c.Position = s.o.Sink.Position()
	for i := range change.Files {
		switch f := &change.Files[i]; {
		case f.Row == nil:
			c.Removed = append(c.Removed, f.Path)
		case f.Declared != nil:
			// otherwise the store has failed; its replacement is compared
			if file, err := s.o.Sink.TreeFile(f.Path); err == nil {
				c.Put = append(c.Put, file)
			}
		}
	}
	for _, t := range change.Texts {
		if t.Gone {
			c.Removed = append(c.Removed, t.Path)
		} else {
			c.Put = append(c.Put, catalog.TreeFile{Path: t.Path, Bytes: t.Bytes})
		}
	}
	return c
}
