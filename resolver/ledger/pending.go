package ledger

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

func appendPendingKey(dst []byte, id int64) []byte { return appendID(append(dst, prefixPending), id) }

// ChangePending stores records of API writes that are not yet in a git commit, by id, and deletes others, in one batch
// that is durable when it returns. Concurrent calls share syncs. The ledger does not know the content of a record.
func (l *Ledger) ChangePending(put map[int64][]byte, drop ...int64) error {
	err := l.commit(func(b *pebble.Batch) (err error) {
		for id, record := range put {
			err = errors.Join(err, setOpaque(b, appendPendingKey(nil, id), record))
		}
		for _, id := range drop {
			err = errors.Join(err, b.Delete(appendPendingKey(nil, id), nil))
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("note writes for git: %w", err)
	}
	return nil
}

// Pending returns the records of ChangePending, by id.
func (l *Ledger) Pending() (all map[int64][]byte, err error) {
	all = map[int64][]byte{}
	err = l.scan(under(prefixPending), func(key, value []byte) error {
		id, err := lastID(key)
		if err != nil {
			return err
		}
		record, err := readOpaque(value)
		all[id] = bytes.Clone(record)
		return err
	})
	return all, err
}
