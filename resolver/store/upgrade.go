package store

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// upgrade empties a store of an older layout, which the files then fill again. It keeps what they cannot give back:
// their last accepted bytes, those of the files that they name, and, for the objects that will be declared again,
// createdAt and updatedAt. All layouts have the times and the uuid at the same place in a record. An interrupted
// upgrade starts again. Times that an earlier upgrade kept, and that no object has taken yet, get the present version.
func (s *Store) upgrade() error {
	var err error
	for _, prefix := range []byte{prefixTimes, prefixProject, prefixDomain, prefixTemplate} {
		err = errors.Join(err, s.keepTimes(prefix))
	}
	b := s.db.NewBatch()
	for _, prefix := range catalogPrefixes {
		if prefix != prefixBytes && prefix != prefixTimes && prefix != prefixText && prefix != prefixRefused {
			err = errors.Join(err, b.DeleteRange([]byte{prefix}, []byte{prefix + 1}, nil))
		}
	}
	err = errors.Join(err, b.Delete(keyCounts, nil), b.Set(keyFormat, binary.AppendUvarint(nil, formatVersion), nil))
	if err == nil {
		err = s.commit(b)
	}
	if err != nil {
		return fmt.Errorf("upgrade to store format %d: %w", formatVersion, err)
	}
	return nil
}

// keepTimes copies the front of all records with the prefix to where Apply looks for the times of new objects.
func (s *Store) keepTimes(prefix byte) error {
	b := s.db.NewBatch()
	err := s.scan([]byte{prefix}, func(_, rec []byte) error {
		if len(rec) < headerLen {
			return errRecord
		}
		front := append([]byte{recordVersion}, rec[offsetCreated:headerLen]...)
		if err := b.Set(timesKey(front), front, nil); err != nil || b.Len() < importChunkBytes {
			return err
		}
		full := b
		b = s.db.NewBatch()
		return s.commit(full)
	})
	return errors.Join(err, s.commit(b))
}
