package ledger

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
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
	it, err := t.l.db.NewIter(&pebble.IterOptions{LowerBound: appendAuditKey(nil, last+1), UpperBound: []byte{prefixAudit +
		1}})
	if err != nil {
		return err
	}
	chains := map[int64]*AuditChain{}
	for ok := it.Last(); ok && err == nil; ok = it.Prev() {
		var rec []byte
		if rec, err = it.ValueAndErr(); err == nil && len(rec) < auditHeadLen {
			err = errRecord
		}
		if err == nil {
			err = t.unlink(chains, auditID(it.Key()), rec)
		}
	}
	if err = errors.Join(err, it.Error(), it.Close()); err != nil {
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
	it, err := l.db.NewIter(&pebble.IterOptions{LowerBound: appendAuditOfKey(nil, project, 0),
		UpperBound: appendAuditOfKey(nil, project, id)})
	if err != nil {
		return 0, err
	}
	if it.Last() {
		before = auditID(it.Key())
	}
	return before, errors.Join(it.Error(), it.Close())
}
