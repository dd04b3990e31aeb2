package datadir

import (
	"errors"
	"path/filepath"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/ledger"
)

// VerifyAudit checks the chains of the audit trail in dir, see ledger.Ledger.
func VerifyAudit(dir string, head [32]byte) (check ledger.AuditCheck, err error) {
	l, err := ledger.Open(filepath.Join(dir, ledger.Folder), ledger.Options{ReadOnly: true})
	if err != nil {
		return check, err
	}
	check, err = l.VerifyAudit(head)
	return check, errors.Join(err, l.Close())
}

// Audit returns a page of the audit trail in dir.
func Audit(dir string, q catalog.AuditQuery) (page catalog.AuditPage, err error) {
	l, err := ledger.Open(filepath.Join(dir, ledger.Folder), ledger.Options{ReadOnly: true})
	if err != nil {
		return page, err
	}
	page, err = l.Audit(q)
	return page, errors.Join(err, l.Close())
}

// DomainNotes calls f with all notes of checks of domains in dir. The note is valid within the call.
func DomainNotes(dir string, f func(n ledger.DomainNote) error) error {
	l, err := ledger.Open(filepath.Join(dir, ledger.Folder), ledger.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	return errors.Join(l.EachDomainNote(f), l.Close())
}
