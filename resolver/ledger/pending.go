package ledger

import (
	"errors"
	"fmt"
)

func appendPendingKey(dst []byte, id int64) []byte { return appendID(append(dst, prefixPending), id) }

// ChangePending stores records of API writes that are not yet in a git commit, by id, and deletes others, in one batch
// that is durable when it returns. Concurrent calls share syncs. The ledger does not know the content of a record.
func (l *Ledger) ChangePending(put map[int64][]byte, drop ...int64) error {
	err := l.read(func() error {
		return l.fs.Run(func() (err error) {
			b := l.db.NewBatch()
			for id, record := range put {
				value := append([]byte{mailVersion}, record...)
				err = errors.Join(err, b.Set(appendPendingKey(nil, id), value, nil))
			}
			for _, id := range drop {
				err = errors.Join(err, b.Delete(appendPendingKey(nil, id), nil))
			}
			if err != nil {
				return errors.Join(err, b.Close())
			}
			return b.Commit(l.durable())
		})
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
		if err != nil || len(value) == 0 {
			return errors.Join(err, errRecord)
		}
		if value[0] != mailVersion {
			_, err = mailDecoder(value)
			return err
		}
		all[id] = append([]byte(nil), value[1:]...)
		return nil
	})
	return all, err
}
