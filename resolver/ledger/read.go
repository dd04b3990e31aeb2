package ledger

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

// read runs f while the ledger stays open, and fails the ledger when f finds damage.
func (l *Ledger) read(f func() error) error { return l.fs.Use(f) }

// now reads the newest state in each get. The value is valid until use returns.
type now struct{ db *pebble.DB }

func (n now) get(key []byte, use func([]byte) error) (bool, error) {
	v, closer, err := n.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	err = use(v)
	return true, errors.Join(err, closer.Close())
}

// A moment reads a consistent state. It is an iterator, not a snapshot of Pebble, because a snapshot needs a lock that
// a failed instance may hold for ever.
type moment struct{ it *pebble.Iterator }

func (m moment) get(key []byte, use func([]byte) error) (bool, error) {
	if !m.it.SeekPrefixGE(key) {
		return false, m.it.Error()
	}
	value, err := m.it.ValueAndErr()
	if err != nil {
		return false, err
	}
	return true, use(value)
}
