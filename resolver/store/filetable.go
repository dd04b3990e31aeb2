package store

import "fingerpost/resolver/catalog"

// File returns one row of the file table, nil when there is none. The row is the caller's.
func (s *Store) File(path string) (row *catalog.FileRow, err error) {
	err = s.read(func() error {
		_, err := now{s.db}.get(appendTextKey(nil, prefixFile, path), func(value []byte) (err error) {
			row, err = decodeRow(value)
			return err
		})
		return err
	})
	return row, err
}
