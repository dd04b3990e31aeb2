package ledger

import (
	"errors"
	"fmt"
)

// ChangeProposals stores records of open proposals, by name, and deletes others, in one batch that is durable when it
// returns. The ledger does not know the content of a record.
func (l *Ledger) ChangeProposals(put map[string][]byte, drop ...string) error {
	err := l.read(func() error {
		return l.fs.Run(func() (err error) {
			b := l.db.NewBatch()
			for name, record := range put {
				value := append([]byte{mailVersion}, record...)
				err = errors.Join(err, b.Set(appendTextKey(nil, prefixProposal, name), value, nil))
			}
			for _, name := range drop {
				err = errors.Join(err, b.Delete(appendTextKey(nil, prefixProposal, name), nil))
			}
			if err != nil {
				return errors.Join(err, b.Close())
			}
			return b.Commit(l.durable())
		})
	})
	if err != nil {
		return fmt.Errorf("note proposals: %w", err)
	}
	return nil
}

// Proposals returns the records of ChangeProposals, by name.
func (l *Ledger) Proposals() (all map[string][]byte, err error) {
	all = map[string][]byte{}
	err = l.scan(under(prefixProposal), func(key, value []byte) error {
		if len(value) == 0 {
			return errRecord
		}
		if value[0] != mailVersion {
			_, err := mailDecoder(value)
			return err
		}
		all[string(key[1:])] = append([]byte(nil), value[1:]...)
		return nil
	})
	return all, err
}
