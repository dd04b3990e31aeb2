package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"
)

// DefaultAuditDays is how long entries are kept that belong to no project.
const DefaultAuditDays = 90

// PruneAudit cuts off the beginning of each chain: the entries that are older than the days of their project. days
// returns 0 for a project that is gone: its entries stay as long as they would have; and -1 to leave a chain alone.
// Other writes can interleave.
// It ends early with ctx.
func (l *Ledger) PruneAudit(ctx context.Context, now time.Time, days func(project int64) int) error {
	longest := DefaultAuditDays
	for project := int64(0); ctx.Err() == nil; project++ {
		found, err := l.nextChain(&project)
		if err == nil && !found {
			return errors.Join(l.pruneAnyGap(now.AddDate(0, 0, -longest)), l.pruneCommits(now))
		}
		if err != nil {
			return err
		}
		keep := days(project)
		longest = max(longest, keep)
		for more := keep >= 0; more; {
			if more, err = l.steps(func(t *mailTurn) (bool, error) { return t.cut(project, keep, now) }); err != nil {
				return fmt.Errorf("prune the audit trail: %w", err)
			}
		}
	}
	return ctx.Err()
}

// nextChain advances project to the next one that has a chain.
func (l *Ledger) nextChain(project *int64) (found bool, err error) {
	later := span{lower: appendChainKey(nil, *project), upper: []byte{prefixAuditChain + 1}}
	err = l.scan(later, func(key, _ []byte) error {
		found = true
		id, err := lastID(key)
		if err != nil {
			return err
		}
		*project = id
		return errStop
	})
	return found, err
}

// cut removes entries from the beginning of a chain, and the whole chain of a project that is gone with its last one.
func (t *mailTurn) cut(project int64, days int, now time.Time) (more bool, err error) {
	c, err := t.l.chain(project)
	if err != nil {
		return false, err
	}
	gone, was := days == 0, *c
	if !gone {
		c.Days = days
	} else if days = c.Days; days == 0 {
		days = DefaultAuditDays
	}
	more, err = t.cutBefore(c, now, days)
	switch {
	case err != nil:
		return false, err
	case gone && c.Entries == 0:
		return false, t.b.Delete(appendChainKey(nil, project), nil)
	case *c == was:
		t.idle = true
		return false, nil
	}
	t.unsynced = c.Entries == was.Entries // the next time finds the days again
	return more, t.b.Set(appendChainKey(nil, project), appendChain(nil, c), nil)
}

// cutBefore removes the entries before the first one that is younger than so many days. An entry from the future, which a
// clock that was ahead has written, goes with the entry after it: alone it would keep all that follow for ever.
func (t *mailTurn) cutBefore(c *AuditChain, now time.Time, days int) (more bool, err error) {
	edge := now.AddDate(0, 0, -days)
	var future [][]byte // keys of entries from the future, whose successor was not seen yet
	n, last := 0, int64(0)
	err = t.l.walk(under(appendID([]byte{prefixAuditOf}, c.Project)...), func(key, value []byte) error {
		at, err := timeOf(value)
		ahead := at.After(now)
		if err != nil || !ahead && !at.Before(edge) {
			return joined(err, errStop)
		}
		if n++; n > entriesPerTurn {
			more = last > 0
			return errStop
		}
		if future = append(future, bytes.Clone(key)); ahead {
			return nil
		}
		last = auditID(key)
		for _, key := range future {
			err = errors.Join(err, t.cutFirst(c, key))
		}
		future = future[:0]
		return err
	})
	if err == nil && last > 0 {
		err = errors.Join(t.dropGaps(c.Project, last), t.noteCut(last))
	}
	return more, err
}

// cutFirst removes the first entry of a chain. key is its key in the projects' index.
func (t *mailTurn) cutFirst(c *AuditChain, key []byte) error {
	entry := appendAuditKey(nil, auditID(key))
	_, err := now{t.l.db}.get(entry, func(rec []byte) error {
		if len(rec) < auditHeadLen {
			return errRecord
		}
		c.Cut = auditHash(rec)
		return nil
	})
	c.Entries--
	return errors.Join(err, t.b.Delete(entry, nil), t.b.Delete(key, nil))
}
