package store

import (
	"errors"
	"fmt"
)

// NoteRemovals replaces the note about imminent removals; an empty note deletes it. When it returns nil, the note and
// every change applied before are durable. Only the caller interprets the note.
func (s *Store) NoteRemovals(note []byte) error {
	err := s.read(func() error {
		if err := s.fs.Err(); err != nil {
			return err
		}
		b := s.db.NewBatch()
		var err error
		if len(note) > 0 {
			err = b.Set(keyRemovals, note, nil)
		} else {
			err = b.Delete(keyRemovals, nil)
		}
		return errors.Join(err, s.commitSynced(b))
	})
	if err == nil {
		err = s.Check() // writes into a deleted directory are lost
	}
	if err != nil {
		return fmt.Errorf("note removals: %w", err)
	}
	return nil
}

// Removals returns the note, nil when there is none.
func (s *Store) Removals() (note []byte, err error) {
	err = s.read(func() error { note, err = s.load(keyRemovals); return err })
	return note, err
}
