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
		list := auditList{it: it, q: q, limit: max(q.Limit, 0)}
		if q.Newest > 0 {
			list.lowest = max(0, l.LastAudit()-q.Newest+1)
		}
		list.skip = int64(max(q.Page, 1)-1) * int64(list.limit)
		err = errors.Join(list.list(), it.Close())
		for i := range list.page.Entries {
			err = errors.Join(err, l.joinCommit(&list.page.Entries[i]))
		}
		if err == nil {
			page = list.page
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
	skip   int64
	limit  int
	page   catalog.AuditPage
}

func (l *auditList) list() (err error) {
	if l.filtered() {
		return l.walk(l.match)
	}
	if l.page.Total, err = l.count(); err != nil || l.skip >= l.page.Total || l.limit == 0 {
		return err
	}
	err = l.walk(l.take)
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

// match adds an entry to the page if it passes the filters, and counts it.
func (l *auditList) match(key, rec []byte) error {
	if !bytes.Contains(rec, []byte(l.q.RequestID)) { // most of the time of a search by request id is decoding
		return nil
	}
	var e catalog.AuditEntry
	if err := decodeAudit(&e, key, rec); err != nil || !l.matches(&e) {
		return err
	}
	if l.page.Total++; l.page.Total > l.skip && len(l.page.Entries) < l.limit {
		l.page.Entries = append(l.page.Entries, e)
	}
	return nil
}

// take adds an entry to the page, until it is full.
func (l *auditList) take(key, rec []byte) error {
	if l.skip > 0 {
		l.skip--
		return nil
	}
	var e catalog.AuditEntry
	if err := decodeAudit(&e, key, rec); err != nil {
		return err
	}
	if l.page.Entries = append(l.page.Entries, e); len(l.page.Entries) == l.limit {
		return errStop
	}
	return nil
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
func (l *auditList) count() (total int64, err error) {
	err = eachChain(l.it, func(c *AuditChain) error {
		if l.covers(c.Project) {
			total += c.Entries
		}
		return nil
	})
	return total, err
}

// ends returns the first step of a walk, and the next ones.
func (l *auditList) ends() (first, next func() bool) {
	if l.q.Ascending {
		return l.it.First, l.it.Next
	}
	return l.it.Last, l.it.Prev
}

// walk calls f with all entries of the covered projects, in the order of the query.
func (l *auditList) walk(f func(key, rec []byte) error) error {
	if l.q.ProjectID != 0 {
		return l.walkProject(f)
	}
	l.it.SetBounds(appendAuditKey(nil, l.lowest), []byte{prefixAudit + 1})
	first, next := l.ends()
	for ok := first(); ok; ok = next() {
		rec, err := l.it.ValueAndErr()
		if err == nil && len(rec) < auditHeadLen {
			err = errRecord
		}
		if err == nil && l.covers(projectOf(rec)) {
			err = f(l.it.Key(), rec)
		}
		if err != nil {
			return err
		}
	}
	return l.it.Error()
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
	prefix := appendID([]byte{prefixAuditOf}, l.q.ProjectID)
	l.it.SetBounds(appendAuditOfKey(nil, l.q.ProjectID, l.lowest), after(prefix))
	first, next := l.ends()
	for ok := first(); ok && err == nil; ok = next() {
		key := appendAuditKey(nil, auditID(l.it.Key()))
		var found bool
		found, err = moment{entries}.get(key, func(rec []byte) error { return f(key, rec) })
		if err == nil && !found {
			err = errRecord
		}
	}
	return errors.Join(err, l.it.Error(), entries.Close())
}

// eachChain calls f with all chains, by project. It sets the iterator's bounds.
func eachChain(it *pebble.Iterator, f func(c *AuditChain) error) error {
	it.SetBounds([]byte{prefixAuditChain}, []byte{prefixAuditChain + 1})
	for ok := it.First(); ok; ok = it.Next() {
		rec, err := it.ValueAndErr()
		if err == nil {
			err = chainRecord(f)(it.Key(), rec)
		}
		if err != nil {
			return err
		}
	}
	return it.Error()
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
