package configsrc

import "fingerpost/resolver/catalog"

// Coverage is catalog.Coverage.
type Coverage = catalog.Coverage

// broughtBy returns who has brought a file that was found in the folder, or a file that it names: nil if somebody has
// saved it here.
func (s *Source) broughtBy(c *candidate) *catalog.Author {
	if s.o.AuthorOf == nil || c.by != nil {
		return nil
	}
	if by := s.o.AuthorOf(c.path, c.bytes); by != nil {
		return by
	}
	for path, content := range c.texts {
		if by := s.o.AuthorOf(path, content); by != nil {
			return by
		}
	}
	return nil
}
