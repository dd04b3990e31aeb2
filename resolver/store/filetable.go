package store

import "fingerpost/resolver/catalog"

// File returns one row of the file table, nil when there is none. The row is the caller's.
func (s *State) File(path string) (row *catalog.FileRow, err error) {
	err = s.read(func() error {
		value, err := s.load(textKey(prefixFile, path))
		if err == nil && value != nil {
			row, err = decodeRow(value)
		}
		return err
	})
	return row, err
}
