package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"fingerpost/resolver/catalog"
)

// MailLog returns one entry of a project; false where there is none.
func (l *Ledger) MailLog(project, id int64) (log catalog.MailLog, found bool, err error) {
	err = l.readMail(project, func(r *mailReader) error {
		for i := range r.rows { // mostly it can be in one of them only
			if id < r.rows[i].minID || id > r.rows[i].maxID || found {
				continue
			}
			err := r.each(&r.rows[i], func(p mailPos, rec []byte) error {
				if p.id() != id {
					return nil
				}
				found = true
				return decodeMailLog(&log, project, p, bytes.Clone(rec))
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return log, found, err
}

// MailLogs returns a page of a project's entries and how many there are on all pages, as they are at one moment. By
// createdAt and without a filter but status, from and to it costs the same however many there are and however far down
// the page is; with another filter or order each entry between from and to is looked at, in bounded memory. ToEmail is
// compared without regard to the case of ASCII letters, an internationalised domain in either of its forms. q.Sort is one
// of MailSorts, or "".
func (l *Ledger) MailLogs(project int64, q catalog.MailQuery) (page []catalog.MailLog, total int, err error) {
	err = l.readMail(project, func(r *mailReader) (err error) {
		l := mailList{mailReader: r, q: q, status: statusCode(q.Status), toIDN: canonicalIDN(q.ToEmail)}
		page, total, err = l.list()
		return err
	})
	return page, total, err
}

// A mailList is one call of MailLogs.
type mailList struct {
	*mailReader
	q      catalog.MailQuery
	status byte   // 0: any
	toIDN  string // see canonicalIDN
}

// canonicalIDN is the canonical form of an address with an internationalised domain, "" for all else: an entry has the
// address as it was sent to, and the caller may have the other form.
func canonicalIDN(address string) string {
	canonical, err := catalog.ParseAddress(address)
	if _, domain, _ := strings.Cut(canonical, "@"); err != nil || !strings.HasPrefix(domain, "xn--") && !strings.Contains(domain, ".xn--") {
		return ""
	}
	return canonical
}

func (l *mailList) list() ([]catalog.MailLog, int, error) {
	if l.q.Status != "" && l.status == 0 {
		return nil, 0, nil
	}
	if l.q.Sort != "" && l.q.Sort != sortCreated {
		i := slices.IndexFunc(mailSorts, func(m mailSort) bool { return m.field == l.q.Sort })
		if i < 0 {
			return nil, 0, fmt.Errorf("the mail log cannot be sorted by %q", l.q.Sort)
		}
		return l.sorted(mailSorts[i].key)
	}
	if l.q.TemplateCode != "" || l.q.ToEmail != "" {
		return l.scanned()
	}
	return l.counted()
}

// window cuts a page out of total rows: how many come before it, and how many are in it.
func (l *mailList) window(total int) (skip, n int) {
	before := max(l.q.Page, 1) - 1
	if l.q.Limit <= 0 || before > total/l.q.Limit {
		return total, 0
	}
	skip = before * l.q.Limit
	return skip, max(0, min(l.q.Limit, total-skip))
}

// counted finds the page by the counts.
func (l *mailList) counted() (page []catalog.MailLog, total int, err error) {
	first, end := 0, 0
	if !l.q.From.IsZero() {
		if first, err = l.preceding(posOf(l.q.From, 0)); err != nil {
			return nil, 0, err
		}
	}
	if l.q.To.IsZero() {
		end = l.matching(len(l.rows))
	} else {
		end, err = l.preceding(posOf(l.q.To, 0))
	}
	if err != nil || end <= first {
		return nil, 0, err
	}
	total = end - first
	skip, n := l.window(total)
	if n == 0 {
		return nil, total, nil
	}
	rank := first + skip
	if !l.q.Ascending {
		rank = end - 1 - skip
	}
	page, err = l.collect(rank, n)
	return page, total, err
}

// matching counts the entries of the first n rows that match.
func (l *mailList) matching(n int) (sum int) {
	for i := range l.rows[:n] {
		sum += l.rows[i].entries(l.status)
	}
	return sum
}

// preceding counts the entries before a place that match.
func (l *mailList) preceding(p mailPos) (n int, err error) {
	i := covering(l.rows, p)
	if i < 0 {
		return 0, nil
	}
	n = l.matching(i)
	err = l.each(&l.rows[i], func(at mailPos, rec []byte) error {
		if !at.before(p) {
			return errStop
		}
		matches, err := l.hasStatus(rec)
		if matches {
			n++
		}
		return err
	})
	if errors.Is(err, errStop) {
		err = nil
	}
	return n, err
}

func (l *mailList) hasStatus(rec []byte) (bool, error) {
	if l.status == 0 {
		return true, nil
	}
	status, err := storedStatus(rec)
	return status == l.status, err
}

// collect returns n matching entries, from the one with a rank on in the order of the list. Ranks count from 0 in
// ascending order.
func (l *mailList) collect(rank, n int) (page []catalog.MailLog, err error) {
	i := 0
	for ; i < len(l.rows) && rank >= l.rows[i].entries(l.status); i++ {
		rank -= l.rows[i].entries(l.status)
	}
	page = make([]catalog.MailLog, 0, n)
	for len(page) < n {
		if i < 0 || i == len(l.rows) {
			return nil, errRecord
		}
		size, had := l.rows[i].entries(l.status), len(page)
		if l.q.Ascending {
			page, err = l.slice(page, &l.rows[i], rank, min(size, rank+n-had))
			rank = 0
			i++
		} else {
			page, err = l.slice(page, &l.rows[i], max(0, rank+1-(n-had)), rank+1)
			slices.Reverse(page[had:])
			if i--; i >= 0 {
				rank = l.rows[i].entries(l.status) - 1
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return page, nil
}

// slice appends the matching entries of a row from a rank to another.
func (l *mailList) slice(page []catalog.MailLog, row *tally, from, to int) ([]catalog.MailLog, error) {
	rank, want := 0, len(page)+to-from
	if from == to {
		return page, nil
	}
	err := l.each(row, func(p mailPos, rec []byte) error {
		matches, err := l.hasStatus(rec)
		if err != nil || !matches {
			return err
		}
		if rank >= to {
			return errStop
		}
		if rank >= from {
			page = append(page, catalog.MailLog{})
			err = decodeMailLog(&page[len(page)-1], l.project, p, bytes.Clone(rec))
		}
		rank++
		return err
	})
	if errors.Is(err, errStop) {
		err = nil
	}
	if err == nil && len(page) != want {
		err = errRecord
	}
	return page, err
}

// walk calls f with all entries that match all filters, in the list's order of createdAt. Their strings are borrowed.
func (l *mailList) walk(f func(p mailPos, rec []byte, log *catalog.MailLog) error) error {
	lower, upper := appendID([]byte{prefixMailLog}, l.project), after(appendID([]byte{prefixMailLog}, l.project))
	if !l.q.From.IsZero() {
		lower = appendMailKey(nil, l.project, posOf(l.q.From, 0))
	}
	if !l.q.To.IsZero() {
		upper = appendMailKey(nil, l.project, posOf(l.q.To, 0))
	}
	it := l.it
	it.SetBounds(lower, upper)
	ok, step := it.Last(), it.Prev
	if l.q.Ascending {
		ok, step = it.First(), it.Next
	}
	var log catalog.MailLog
	for ; ok; ok = step() {
		p, err := posIn(it.Key())
		if err != nil {
			return err
		}
		rec, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		matches, err := l.hasStatus(rec)
		if err == nil && matches {
			if err = decodeMailLog(&log, l.project, p, rec); err == nil && l.matches(&log) {
				err = f(p, rec, &log)
			}
		}
		if err != nil {
			return err
		}
	}
	return it.Error()
}

func (l *mailList) matches(log *catalog.MailLog) bool {
	return (l.q.TemplateCode == "" || log.TemplateCode == l.q.TemplateCode) &&
		(l.q.ToEmail == "" || l.isTo(log.ToEmail))
}

func (l *mailList) isTo(address string) bool {
	if len(l.q.ToEmail) == len(address) && strings.EqualFold(address, l.q.ToEmail) {
		return true
	}
	return l.toIDN != "" && strings.EqualFold(canonicalIDN(address), l.toIDN)
}

// scanned looks at all entries.
func (l *mailList) scanned() (page []catalog.MailLog, total int, err error) {
	skip, n := l.window(int(^uint(0) >> 1))
	err = l.walk(func(p mailPos, rec []byte, _ *catalog.MailLog) error {
		total++
		if total <= skip || total-skip > n {
			return nil
		}
		page = append(page, catalog.MailLog{})
		return decodeMailLog(&page[len(page)-1], l.project, p, bytes.Clone(rec))
	})
	return page, total, err
}
