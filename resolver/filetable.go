package resolver

import "fingerpost/resolver/catalog"

// File returns one row of the file table; NOT_FOUND if the store has not accepted the file.
func (s *State) File(path string) (*catalog.FileRow, error) {
	row, err := s.of.newest().File(path)
	if err != nil {
		return nil, catalog.Unreadable(err)
	}
	if row == nil {
		return nil, catalog.NotFound("file")
	}
	return row, nil
}
