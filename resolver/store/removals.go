package store

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
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
		sync := pebble.Sync
		if s.dir == "" {
			sync = pebble.NoSync // a store in memory has no log
		}
		return errors.Join(err, s.fs.Run(func() error { return errors.Join(b.Commit(sync), b.Close()) }))
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
	err = s.read(func() error {
		value, closer, err := s.db.Get(keyRemovals)
		if errors.Is(err, pebble.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		note = append(note, value...)
		return closer.Close()
	})
	return note, err
}
