package store

import (
	"encoding/binary"
	"errors"

	"fingerpost/resolver/catalog"

	"github.com/cockroachdb/pebble/v2"
)

// reserve is how many generations are reserved at a time: each reservation is one sync.
const reserve = 1024

// Epoch returns the epoch of the store's generations.
func (s *Store) Epoch() string { return *s.epoch.Load() }

// Continue makes the generations of s follow those of the store that it replaces, in the same epoch.
func (s *Store) Continue(old *Store) {
	s.write.Lock()
	defer s.write.Unlock()
	s.epoch.Store(old.epoch.Load())
	s.generation.Store(max(s.generation.Load(), old.Generation()))
}

// loadPosition loads the epoch, or makes one, and skips the generations that a crash may have lost.
func (s *Store) loadPosition(newEpoch bool) error {
	stored, err := s.load(keyEpoch)
	if err != nil {
		return err
	}
	epoch := string(stored)
	switch {
	case stored == nil && s.fs.ReadOnly:
	case stored == nil || newEpoch:
		epoch = catalog.NewEpoch()
		b := s.db.NewBatch()
		err := errors.Join(b.Set(keyEpoch, []byte(epoch), nil), b.Delete(keyReserved, nil))
		if newEpoch {
			err = errors.Join(err, s.commitSynced(b))
		} else { // as durable as the first change
			err = errors.Join(err, s.commit(b))
		}
		if err != nil {
			return err
		}
	case !catalog.IsEpoch(epoch):
		return errRecord
	}
	s.epoch.Store(&epoch)
	reserved, _, err := s.uint(keyReserved)
	if err != nil {
		return err
	}
	s.reserved = reserved
	if !s.fs.ReadOnly {
		s.generation.Store(max(s.generation.Load(), reserved))
	}
	return nil
}

// reserveFor makes sure that no later process uses the numbers up to generation for another state. A store in memory
// has no later process.
func (s *Store) reserveFor(generation uint64) error {
	if generation <= s.reserved || s.dir == "" {
		return nil
	}
	return s.setReserved(generation + reserve - 1)
}

// freeReserved ends the reservation: nothing is lost in an orderly end.
func (s *Store) freeReserved() error {
	if s.dir == "" || s.fs.ReadOnly || s.reserved <= s.generation.Load() || s.db == nil {
		return nil
	}
	return s.setReserved(s.generation.Load())
}

func (s *Store) setReserved(generation uint64) error {
	b := s.db.NewBatch()
	err := b.Set(keyReserved, binary.AppendUvarint(nil, generation), pebble.NoSync)
	if err = errors.Join(err, s.commitSynced(b)); err == nil {
		s.reserved = generation
	}
	return err
}

// putPosition writes the position that a change of the authority has.
func (w *writer) putPosition(p *catalog.Position) {
	w.effect.Generation = p.Generation
	w.set(keyEpoch, []byte(p.Epoch))
	w.set(keyReserved, binary.AppendUvarint(nil, p.Generation))
}
