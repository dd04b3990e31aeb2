package ledger

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"fingerpost/resolver/catalog"

	"github.com/cockroachdb/pebble/v2"
)

// A mailReader reads the counts and entries of one project as of one moment.
type mailReader struct {
	project int64
	counts  mailCounts
	it      *pebble.Iterator // over the whole ledger, until f sets bounds
	key     []byte
}

// readMail calls f with a reader of the present state.
func (l *Ledger) readMail(project int64, f func(r *mailReader) error) error {
	return l.read(func() error {
		it, err := l.db.NewIter(nil)
		if err != nil {
			return err
		}
		r := mailReader{project: project, it: it}
		if r.counts, err = readCounts(moment{it}.get, project); err == nil {
			err = f(&r)
		}
		return errors.Join(err, it.Close())
	})
}

func (r *mailReader) logKey(p mailPos) []byte {
	r.key = appendMailKey(r.key[:0], r.project, p)
	return r.key
}

// MailIDEpoch is the moment from which the ids of mails count microseconds.
var MailIDEpoch = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// nearID is the largest distance between a mail's createdAt and the time in its id, unless the clock was set back.
const nearID = 5 * time.Second

// MailLog returns one entry of a project; false if there is none. It costs a walk through the keys around
// the time in the id: as far as a clock that was set back has ever driven ids and times apart.
func (l *Ledger) MailLog(project, id int64) (log catalog.MailLog, found bool, err error) {
	err = l.readMail(project, func(r *mailReader) error {
		at, spread := idTime(id), time.Duration(l.mail.spread.Load())
		for _, far := range []time.Duration{nearID, spread} {
			from, to := posOf(at.Add(-far), 0), posOf(at.Add(far), 0)
			r.it.SetBounds(appendMailKey(nil, project, from), appendMailKey(nil, project, to))
			if found, err = r.find(id, &log); err != nil || found || spread <= nearID {
				return err
			}
		}
		return nil
	})
	return log, found, err
}

// find searches for an id within the iterator's bounds.
func (r *mailReader) find(id int64, log *catalog.MailLog) (found bool, err error) {
	for ok := r.it.First(); ok; ok = r.it.Next() {
		p, err := posIn(r.it.Key())
		if err != nil {
			return false, err
		}
		if p.id() != id {
			continue
		}
		rec, err := r.it.ValueAndErr()
		if err != nil {
			return false, err
		}
		return true, decodeMailLog(log, r.project, p, rec)
	}
	return false, r.it.Error()
}

// MailLogs returns a page of a project's entries and the number of entries on all pages, as of one moment. Sorted by
// createdAt and filtered by status at most, it costs the walk to the page. Any other filter or order reads each entry
// between from and to, in bounded memory. ToEmail is compared without regard to the case of ASCII letters, and matches
// an internationalised domain in either form. q.Sort is one of MailSorts, or "".
func (l *Ledger) MailLogs(project int64, q catalog.MailQuery) (page []catalog.MailLog, total int, err error) {
	err = l.readMail(project, func(r *mailReader) (err error) {
		list := newMailList(r, l.aroundMessage(q))
		page, total, err = list.list()
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
	text   string // q.Text in lower case
	idn    string // canonicalIDN of it
}

func newMailList(r *mailReader, q catalog.MailQuery) mailList {
	return mailList{mailReader: r, q: q, status: statusCode(q.Status), toIDN: canonicalIDN(q.ToEmail),
		text: strings.ToLower(q.Text), idn: canonicalIDN(q.Text)}
}

// canonicalIDN returns the canonical form of an address with an internationalised domain, "" for other addresses: an
// entry holds the address as it was sent to, and the caller may use the other form.
func canonicalIDN(address string) string {
	canonical, err := catalog.ParseAddress(address)
	if _, domain, _ := strings.Cut(canonical, "@"); err != nil || !strings.HasPrefix(domain, "xn--") &&
		!strings.Contains(domain, ".xn--") {
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
	if l.filtered() || !l.q.From.IsZero() || !l.q.To.IsZero() {
		return l.scanned()
	}
	return l.counted()
}

// window returns the position of the page within total rows: how many rows come before it, and how many are in it.
func (l *mailList) window(total int) (skip, n int) {
	before := max(l.q.Page, 1) - 1
	if l.q.Limit <= 0 || before > total/l.q.Limit {
		return total, 0
	}
	skip = before * l.q.Limit
	return skip, max(0, min(l.q.Limit, total-skip))
}

// filtered reports whether a filter needs the whole entry.
func (l *mailList) filtered() bool {
	return l.q.TemplateCode != "" || l.q.ToEmail != "" || l.q.MessageID != "" || l.text != ""
}

// counted takes the total from the counts and walks to the end of the page.
func (l *mailList) counted() (page []catalog.MailLog, total int, err error) {
	total = l.counts.entries(l.status)
	skip, n := l.window(total)
	if n == 0 {
		return nil, total, nil
	}
	seen := 0
	err = l.walk(false, func(p mailPos, rec []byte, _ *catalog.MailLog) error {
		if seen++; seen <= skip {
			return nil
		}
		page = append(page, catalog.MailLog{})
		if err := decodeMailLog(&page[len(page)-1], l.project, p, rec); err != nil {
			return err
		}
		if len(page) == n {
			return errStop
		}
		return nil
	})
	if errors.Is(err, errStop) {
		return page, total, nil
	}
	return nil, 0, joined(err, errRecord) // there are fewer entries than counted
}

func (l *mailList) hasStatus(rec []byte) (bool, error) {
	if l.status == 0 {
		return true, nil
	}
	status, err := storedStatus(rec)
	return status == l.status, err
}

// walk calls f with all entries that match the filters, in the list's order of createdAt. log is filled only if whole
// is set or a filter needs it.
func (l *mailList) walk(whole bool, f func(p mailPos, rec []byte, log *catalog.MailLog) error) error {
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
		if err == nil && matches && (whole || l.filtered()) {
			if err = decodeMailLog(&log, l.project, p, rec); err == nil {
				matches = l.matches(&log)
			}
		}
		if err == nil && matches {
			err = f(p, rec, &log)
		}
		if err != nil {
			return err
		}
	}
	return it.Error()
}

func (l *mailList) matches(log *catalog.MailLog) bool {
	return (l.q.TemplateCode == "" || log.TemplateCode == l.q.TemplateCode) &&
		(l.q.MessageID == "" || log.MessageID == l.q.MessageID) &&
		(l.q.ToEmail == "" || l.isTo(log.ToEmail)) && (l.text == "" || l.has(log))
}

// has reports whether the text is in the entry's address, subject or Message-ID.
func (l *mailList) has(log *catalog.MailLog) bool {
	return strings.Contains(strings.ToLower(log.ToEmail), l.text) ||
		strings.Contains(strings.ToLower(log.Subject), l.text) ||
		strings.Contains(strings.ToLower(log.MessageID), l.text) ||
		l.idn != "" && strings.EqualFold(canonicalIDN(log.ToEmail), l.idn)
}

func (l *mailList) isTo(address string) bool {
	if len(l.q.ToEmail) == len(address) && strings.EqualFold(address, l.q.ToEmail) {
		return true
	}
	return l.toIDN != "" && strings.EqualFold(canonicalIDN(address), l.toIDN)
}

// scanned reads all entries.
func (l *mailList) scanned() (page []catalog.MailLog, total int, err error) {
	skip, n := l.window(int(^uint(0) >> 1))
	err = l.walk(false, func(p mailPos, rec []byte, _ *catalog.MailLog) error {
		total++
		if total <= skip || total-skip > n {
			return nil
		}
		page = append(page, catalog.MailLog{})
		return decodeMailLog(&page[len(page)-1], l.project, p, rec)
	})
	return page, total, err
}
