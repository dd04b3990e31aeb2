package store

import (
	"encoding/binary"
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

func appendCounts(dst []byte, c Counts) []byte {
	dst = binary.AppendUvarint(dst, uint64(c.Projects))
	dst = binary.AppendUvarint(dst, uint64(c.Domains))
	return binary.AppendUvarint(dst, uint64(c.Wildcards))
}

func (s *Store) readCounts() (Counts, error) {
	v, closer, err := s.db.Get(keyCounts)
	if errors.Is(err, pebble.ErrNotFound) {
		return Counts{}, nil
	}
	if err != nil {
		return Counts{}, err
	}
	d := decoder{s: string(v)}
	c := Counts{Projects: int(d.uint()), Domains: int(d.uint()), Wildcards: int(d.uint())}
	return c, errors.Join(d.err(), closer.Close())
}
