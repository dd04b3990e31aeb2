package store

import (
	"errors"
	"fmt"
)

// mailPrefixes are the first bytes of the keys under which earlier releases kept mail in the store. The ledger has it
// now, under the same keys. No other key of the store begins with a capital letter.
var mailPrefixes = []byte("EGILMNQX")

// FormerMail reads the mail records that an earlier release left in the store.
type FormerMail struct{ s *Store }

// FormerMail returns the mail records that an earlier release left in the store; false if there are none.
func (s *Store) FormerMail() (m FormerMail, found bool, err error) {
	m = FormerMail{s}
	for _, prefix := range mailPrefixes {
		err = m.Each(prefix, func(_, _ []byte) error { found = true; return errStop })
		if found || err != nil {
			break
		}
	}
	return m, found, err
}

// Each calls f with all keys that begin with prefix, in order, until f returns an error. Key and value are valid within
// the call.
func (m FormerMail) Each(prefix byte, f func(key, value []byte) error) error {
	var stopped error // an error of f, not of the store
	err := m.s.scan([]byte{prefix}, func(key, value []byte) error {
		if stopped = f(key, value); stopped != nil {
			return errStop
		}
		return nil
	})
	if err == nil && !errors.Is(stopped, errStop) {
		err = stopped
	}
	return err
}

// Get calls f with the value of a key, if there is one.
func (m FormerMail) Get(key []byte, f func(value []byte) error) (found bool, err error) {
	var value []byte
	err = m.s.read(func() error { value, err = m.s.load(key); return err })
	if err != nil || value == nil {
		return false, err
	}
	return true, f(value)
}

// Drop deletes the records; the deletion is durable when it returns. The ledger must have them before.
func (m FormerMail) Drop() error {
	s := m.s
	s.write.Lock()
	defer s.write.Unlock()
	err := s.read(func() error {
		b := s.db.NewBatch()
		var err error
		for _, prefix := range mailPrefixes {
			err = errors.Join(err, b.DeleteRange([]byte{prefix}, []byte{prefix + 1}, nil))
		}
		return errors.Join(err, s.commitSynced(b))
	})
	if err != nil {
		return fmt.Errorf("drop the mail that is in the ledger: %w", err)
	}
	return nil
}
