package ledger

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// ChangeProposals stores records of open proposals, by name, and deletes others, in one batch that is durable when it
// returns. The ledger does not know the content of a record.
func (l *Ledger) ChangeProposals(put map[string][]byte, drop ...string) error {
	err := l.commit(func(b *pebble.Batch) (err error) {
		for name, record := range put {
			err = errors.Join(err, setOpaque(b, appendTextKey(nil, prefixProposal, name), record))
		}
		for _, name := range drop {
			err = errors.Join(err, b.Delete(appendTextKey(nil, prefixProposal, name), nil))
		}
		return err
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
		record, err := readOpaque(value)
		all[string(key[1:])] = bytes.Clone(record)
		return err
	})
	return all, err
}
