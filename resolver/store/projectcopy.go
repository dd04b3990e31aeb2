package store

import (
	"encoding/binary"
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

// The value of a domain's key is the domain's record, a denormalised copy of its project's record, and the length of
// that copy in four bytes. We store the project next to the domain, so that a miss needs one lookup instead of two,
// which are most of its cost. A project with many domains has no copies, or each change of the project would write
// thousands.
const (
	maxCopies       = 64 // domains
	copyLengthBytes = 4
)

// withProject appends the project's record, nil for none, to a domain's.
func withProject(dst, project []byte) []byte {
	return binary.BigEndian.AppendUint32(append(dst, project...), uint32(len(project)))
}

// split returns the two records in a domain's value; both are nil when the value cannot be decoded.
func split(value []byte) (domain, project []byte) {
	at := len(value) - copyLengthBytes
	if at < 0 {
		return nil, nil
	}
	n := binary.BigEndian.Uint32(value[at:])
	if uint64(n) > uint64(at) {
		return nil, nil
	}
	return value[: at-int(n) : at-int(n)], value[at-int(n) : at]
}

// setProjectCopies rewrites the values of all domains from their own records and the project records in the store. It
// runs after an Import, which merges the two separately, and on a store of format 1, which had no copies.
func (s *Store) setProjectCopies(domainOf func(value []byte) []byte) error {
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
		if counts[project] > maxCopies {
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

// copyFor returns the project record to copy to each domain of a project with that many domains.
func copyFor(domains int, record []byte) []byte {
	if domains > maxCopies {
		return nil
	}
	return record
}
