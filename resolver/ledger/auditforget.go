package ledger

import (
	"errors"
	"fmt"
)

// ForgetAudit removes all entries whose id is higher than last: those of an AppendAudit that failed may be on disk.
func (l *Ledger) ForgetAudit(last int64) error {
	err := l.writeMail(l.newBatch(), func(t *mailTurn) error { return t.forgetAudit(last) })
	if err != nil {
		return fmt.Errorf("forget entries of the audit trail: %w", err)
	}
	return nil
}

func (t *mailTurn) forgetAudit(last int64) error {
	chains := map[int64]*AuditChain{}
	later := span{appendAuditKey(nil, last+1), []byte{prefixAudit + 1}, true}
	err := t.l.walk(later, func(key, rec []byte) error {
		if len(rec) < auditHeadLen {
			return errRecord
		}
		return t.unlink(chains, auditID(key), rec)
	})
	if err != nil {
		return err
	}
	return t.putChains(chains, last)
}

// unlink removes the last entry of a chain.
func (t *mailTurn) unlink(chains map[int64]*AuditChain, id int64, rec []byte) (err error) {
	project := projectOf(rec)
	c := chains[project]
	if c == nil {
		if c, err = t.l.chain(project); err != nil {
			return err
		}
		chains[project] = c
	}
	c.Head = [32]byte(rec[offsetPrev:offsetEntry])
	c.Entries--
	c.Last, err = t.l.entryBefore(project, id)
	return errors.Join(err,
		t.b.Delete(appendAuditKey(nil, id), nil),
		t.b.Delete(appendAuditOfKey(nil, project, id), nil))
}

// entryBefore returns the id of a project's entry before another, 0 if there is none.
func (l *Ledger) entryBefore(project, id int64) (before int64, err error) {
	earlier := span{appendAuditOfKey(nil, project, 0), appendAuditOfKey(nil, project, id), true}
	err = l.walk(earlier, func(key, _ []byte) error {
		before = auditID(key)
		return errStop
	})
	return before, err
}
