package resolver

import (
	"errors"
	"path/filepath"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/ledger"
)

// The results of VerifyAudit and AuditHeads, for callers that do not import package ledger.
type (
	// An AuditCheck says whether the chains of the trail hold.
	AuditCheck = ledger.AuditCheck
	// An AuditGap is a place at which damage has cut the trail.
	AuditGap = ledger.AuditGap
	// An AuditChain is the chain of one project's entries.
	AuditChain = ledger.AuditChain
)

// VerifyAuditDir is Resolver.VerifyAudit for the data directory of a service that does not run. It changes nothing.
func VerifyAuditDir(dir string, head [32]byte) (check AuditCheck, err error) {
	l, err := ledger.Open(filepath.Join(dir, ledger.Folder), ledger.Options{ReadOnly: true})
	if err != nil {
		return check, err
	}
	check, err = l.VerifyAudit(head)
	return check, errors.Join(err, l.Close())
}

// AuditDir is Resolver.Audit for the data directory of a service that does not run. It changes nothing.
func AuditDir(dir string, q catalog.AuditQuery) (page catalog.AuditPage, err error) {
	l, err := ledger.Open(filepath.Join(dir, ledger.Folder), ledger.Options{ReadOnly: true})
	if err != nil {
		return page, err
	}
	page, err = l.Audit(q)
	return page, errors.Join(err, l.Close())
}
