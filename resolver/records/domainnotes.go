package records

import (
	"bytes"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/ledger"
)

// A DomainNote is what the ledger keeps of the checks of a domain.
type DomainNote = ledger.DomainNote

// ChangeDomainNotes stores and deletes notes durably, see ledger.Ledger; UNAVAILABLE while the ledger cannot be used.
func (r *Records) ChangeDomainNotes(notes []DomainNote) error {
	return r.withLedger(func(l *ledger.Ledger) error { return l.ChangeDomainNotes(notes) })
}

// DomainNote returns the note of a project's domain; false if there is none.
func (r *Records) DomainNote(project catalog.UUID, domain string) (note []byte, found bool, err error) {
	err = r.withLedger(func(l *ledger.Ledger) (err error) {
		note, found, err = l.DomainNote(project, domain)
		return err
	})
	return note, found, err
}

// EachDomainNote calls f with all notes. Note is valid within the call. f may be called again from the first note, if the
// ledger is replaced meanwhile.
func (r *Records) EachDomainNote(f func(n DomainNote) error) error {
	return r.withLedger(func(l *ledger.Ledger) error { return l.EachDomainNote(f) })
}

// SetNamed stores small values of another package by name, durably, all or none; nil deletes one. UNAVAILABLE while the
// ledger cannot be used.
func (r *Records) SetNamed(values map[string][]byte) error {
	r.named.Lock()
	defer r.named.Unlock()
	return r.withLedger(func(l *ledger.Ledger) error { return l.SetNamed(values) })
}

// RemoveNamed deletes values of SetNamed if all are still these.
func (r *Records) RemoveNamed(values map[string][]byte) error {
	r.named.Lock()
	defer r.named.Unlock()
	return r.withLedger(func(l *ledger.Ledger) error {
		gone := map[string][]byte{}
		for name, value := range values {
			if is, found, err := l.Named(name); err != nil || !found || !bytes.Equal(is, value) {
				return err
			}
			gone[name] = nil
		}
		return l.SetNamed(gone)
	})
}

// EachNamed calls f with the values of SetNamed whose names begin with a prefix. value is valid within the call. f may be
// called again from the first value, if the ledger is replaced meanwhile.
func (r *Records) EachNamed(prefix string, f func(name string, value []byte) error) error {
	return r.withLedger(func(l *ledger.Ledger) error { return l.EachNamed(prefix, f) })
}

// Named returns the value of SetNamed; false if there is none.
func (r *Records) Named(name string) (value []byte, found bool, err error) {
	err = r.withLedger(func(l *ledger.Ledger) (err error) {
		value, found, err = l.Named(name)
		return err
	})
	return value, found, err
}
