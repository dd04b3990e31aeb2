package ledger

import (
	"bytes"
	"encoding/binary"
	"errors"

	"fingerpost/resolver/catalog"

	"github.com/cockroachdb/pebble/v2"
)

// Audit returns a page of the entries that a query selects, in its order, as of one moment. Without filters but the
// project it costs the walk to the page, and one row for each project. With other filters it reads every entry of the
// project, or of all: with Newest, of the newest.
func (l *Ledger) Audit(q catalog.AuditQuery) (page catalog.AuditPage, err error) {
	err = l.read(func() error {
		it, err := l.db.NewIter(nil)
		if err != nil {
			return err
		}
		list := auditList{it: it, q: q}
		if q.Newest > 0 {
			list.lowest = max(0, l.LastAudit()-q.Newest+1)
		}
		page, err = list.list()
		err = errors.Join(err, it.Close())
		for i := range page.Entries {
			err = errors.Join(err, l.joinCommit(&page.Entries[i]))
		}
		return err
	})
	return page, err
}

// An auditList is one call of Audit.
type auditList struct {
	it     *pebble.Iterator // over the whole ledger
	q      catalog.AuditQuery
	lowest int64 // id of the first entry that is looked at
}

func (l *auditList) list() (catalog.AuditPage, error) {
	p, filtered := pageOf[catalog.AuditEntry](l.q.Page, l.q.Limit), l.filtered()
	if !filtered {
		total, err := l.count()
		p = countedPage[catalog.AuditEntry](l.q.Page, l.q.Limit, total)
		if err != nil || p.size == 0 {
			return catalog.AuditPage{Total: int64(total)}, err
		}
	}
	err := l.walk(func(key, rec []byte) error {
		if filtered {
			if found, err := l.match(key, rec); err != nil || !found {
				return err
			}
		}
		return p.add(func(e *catalog.AuditEntry) error { return decodeAudit(e, key, rec) })
	})
	return catalog.AuditPage{Entries: p.rows, Total: int64(p.total)}, err
}

// match reports whether an entry passes the filters.
func (l *auditList) match(key, rec []byte) (bool, error) {
	if !bytes.Contains(rec, []byte(l.q.RequestID)) { // most of the time of a search by request id is decoding
		return false, nil
	}
	var e catalog.AuditEntry
	err := decodeAudit(&e, key, rec)
	return err == nil && l.matches(&e), err
}

// filtered reports whether entries must be read to count them.
func (l *auditList) filtered() bool {
	q := &l.q
	return q.Actor != "" || q.Action != "" || q.RequestID != "" || q.Newest > 0 || !q.From.IsZero() || !q.To.IsZero()
}

func (l *auditList) matches(e *catalog.AuditEntry) bool {
	q := &l.q
	return (q.Actor == "" || e.By(q.Actor)) && (q.Action == "" || e.Action == q.Action) &&
		(q.RequestID == "" || e.RequestID == q.RequestID) &&
		(q.From.IsZero() || !e.Time.Before(q.From)) && (q.To.IsZero() || e.Time.Before(q.To))
}

// covers reports whether the query selects entries of a project.
func (l *auditList) covers(project int64) bool {
	return (l.q.ProjectID == 0 || project == l.q.ProjectID) && (l.q.Covers == nil || project != 0 && l.q.Covers(project))
}

// count adds up the entries of the chains.
func (l *auditList) count() (total int, err error) {
	err = eachChain(l.it, func(c *AuditChain) error {
		if l.covers(c.Project) {
			total += int(c.Entries)
		}
		return nil
	})
	return total, err
}

// walk calls f with all entries of the covered projects, in the order of the query.
func (l *auditList) walk(f func(key, rec []byte) error) error {
	if l.q.ProjectID != 0 {
		return l.walkProject(f)
	}
	s := span{appendAuditKey(nil, l.lowest), []byte{prefixAudit + 1}, !l.q.Ascending}
	return walk(l.it, s, func(key, rec []byte) error {
		if len(rec) < auditHeadLen {
			return errRecord
		}
		if !l.covers(projectOf(rec)) {
			return nil
		}
		return f(key, rec)
	})
}

// walkProject is walk for one project.
func (l *auditList) walkProject(f func(key, rec []byte) error) error {
	if !l.covers(l.q.ProjectID) {
		return nil
	}
	entries, err := l.it.Clone(pebble.CloneOptions{IterOptions: &pebble.IterOptions{}})
	if err != nil {
		return err
	}
	s := under(appendID([]byte{prefixAuditOf}, l.q.ProjectID)...)
	s.lower, s.descending = appendAuditOfKey(nil, l.q.ProjectID, l.lowest), !l.q.Ascending
	err = walk(l.it, s, func(key, _ []byte) error {
		key = appendAuditKey(nil, auditID(key))
		found, err := moment{entries}.get(key, func(rec []byte) error { return f(key, rec) })
		if err == nil && !found {
			err = errRecord
		}
		return err
	})
	return errors.Join(err, entries.Close())
}

// eachChain calls f with all chains, by project. It sets the iterator's bounds.
func eachChain(it *pebble.Iterator, f func(c *AuditChain) error) error {
	return walk(it, under(prefixAuditChain), chainRecord(f))
}

// chainRecord returns a function that calls f with the chain in a record.
func chainRecord(f func(c *AuditChain) error) func(key, rec []byte) error {
	return func(key, rec []byte) error {
		if len(key) == len(keyAuditState) {
			return nil
		}
		project, err := lastID(key)
		if err != nil {
			return err
		}
		c, err := decodeChain(project, rec)
		if err != nil {
			return err
		}
		return f(c)
	}
}

// projectOf returns the project in a record of at least auditHeadLen bytes.
func projectOf(rec []byte) int64 { return int64(binary.BigEndian.Uint64(rec[offsetProject:])) }
