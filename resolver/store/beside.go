package store

import (
	"encoding/binary"
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

// The value of a domain's key is its record, the record of its project, and the length of the latter in four bytes. With
// both in one place a miss takes one search of the store, where two would be most of all that it does. A project of
// many domains has no copies of its record there, or each change of it would write thousands.
const (
	maxBeside    = 64 // domains
	besideLength = 4
)

// withProject appends the project's record, nil for none, to a domain's.
func withProject(dst, project []byte) []byte {
	return binary.BigEndian.AppendUint32(append(dst, project...), uint32(len(project)))
}

// split takes a domain's value apart; both are nil for bytes that are none.
func split(value []byte) (domain, project []byte) {
	at := len(value) - besideLength
	if at < 0 {
		return nil, nil
	}
	n := binary.BigEndian.Uint32(value[at:])
	if uint64(n) > uint64(at) {
		return nil, nil
	}
	return value[: at-int(n) : at-int(n)], value[at-int(n) : at]
}

// setBesides writes the values of all domains anew, from their own records and those of the projects in the store: after
// an Import, which merges both apart, and for a store of format 1, in which they stood apart.
func (s *Store) setBesides(domainOf func(value []byte) []byte) error {
	counts := make(map[int64]int)
	each := func(f func(key, domain []byte, project int64) error) error {
		it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{prefixDomain}, UpperBound: []byte{prefixDomain + 1}})
		if err != nil {
			return err
		}
		for ok := it.First(); ok && err == nil; ok = it.Next() {
			var value []byte
			if value, err = it.ValueAndErr(); err == nil {
				domain := domainOf(value)
				err = f(it.Key(), domain, domainRef(domain).ProjectID)
			}
		}
		return errors.Join(err, it.Error(), it.Close())
	}
	err := each(func(_, _ []byte, project int64) error { counts[project]++; return nil })
	if err != nil {
		return err
	}
	b := s.db.NewBatch()
	var rec, key []byte
	err = each(func(name, domain []byte, project int64) error {
		rec = append(rec[:0], domain...)
		if counts[project] > maxBeside {
			rec = withProject(rec, nil)
		} else {
			key = appendProjectKey(key[:0], project)
			found, err := now{s.db}.get(key, func(p []byte) error { rec = withProject(rec, p); return nil })
			if err != nil {
				return err
			}
			if !found {
				return errRecord
			}
		}
		if err := b.Set(name, rec, nil); err != nil || b.Len() < importChunkBytes {
			return err
		}
		full := b
		b = s.db.NewBatch()
		return s.commit(full)
	})
	return errors.Join(err, s.commit(b))
}

// besideOf is what goes beside the domains of a block that has so many.
func besideOf(domains int, record []byte) []byte {
	if domains > maxBeside {
		return nil
	}
	return record
}
