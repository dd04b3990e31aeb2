package records

import "fingerpost/resolver/ledger"

// A KeyUse is what the ledger knows of an API key.
type KeyUse = ledger.KeyUse

// KeyUses lists what the ledger knows of keys; UNAVAILABLE while it cannot be used.
func (r *Records) KeyUses() (uses []KeyUse, err error) {
	err = r.withLedger(func(l *ledger.Ledger) (err error) {
		uses, err = l.KeyUses()
		return err
	})
	return uses, err
}

// SetKeyUses stores the uses of keys durably, and forgets those of the keys with the ids in forget; UNAVAILABLE while
// the ledger cannot be used.
func (r *Records) SetKeyUses(uses []KeyUse, forget []string) error {
	return r.withLedger(func(l *ledger.Ledger) error { return l.SetKeyUses(uses, forget) })
}
