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
			around := span{lower: appendMailKey(nil, project, from), upper: appendMailKey(nil, project, to)}
			err := walk(r.it, around, func(key, rec []byte) error {
				p, err := posIn(key)
				if err != nil || p.id() != id {
					return err
				}
				found = true
				return joined(decodeMailLog(&log, project, p, rec), errStop)
			})
			if err != nil || found || spread <= nearID {
				return err
			}
		}
		return nil
	})
	return log, found, err
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
	p := pageOf[catalog.MailLog](l.q.Page, l.q.Limit)
	if !l.filtered() && l.q.From.IsZero() && l.q.To.IsZero() {
		p = countedPage[catalog.MailLog](l.q.Page, l.q.Limit, l.counts.entries(l.status))
		if p.size == 0 {
			return nil, p.total, nil
		}
	}
	err := l.walk(false, func(pos mailPos, rec []byte, _ *catalog.MailLog) error {
		return p.add(func(log *catalog.MailLog) error { return decodeMailLog(log, l.project, pos, rec) })
	})
	if err == nil && p.counted && len(p.rows) < p.size {
		err = errRecord // there are fewer entries than counted
	}
	return p.rows, p.total, err
}

// filtered reports whether a filter needs the whole entry.
func (l *mailList) filtered() bool {
	return l.q.TemplateCode != "" || l.q.ToEmail != "" || l.q.MessageID != "" || l.text != ""
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
	s := under(appendID([]byte{prefixMailLog}, l.project)...)
	s.descending = !l.q.Ascending
	if !l.q.From.IsZero() {
		s.lower = appendMailKey(nil, l.project, posOf(l.q.From, 0))
	}
	if !l.q.To.IsZero() {
		s.upper = appendMailKey(nil, l.project, posOf(l.q.To, 0))
	}
	var log catalog.MailLog
	return walk(l.it, s, func(key, rec []byte) error {
		p, err := posIn(key)
		if err != nil {
			return err
		}
		if found, err := l.match(p, rec, whole, &log); err != nil || !found {
			return err
		}
		return f(p, rec, &log)
	})
}

// match reports whether an entry passes the filters. log is filled only if whole is set or a filter needs it.
func (l *mailList) match(p mailPos, rec []byte, whole bool, log *catalog.MailLog) (bool, error) {
	found, err := l.hasStatus(rec)
	if err != nil || !found || !whole && !l.filtered() {
		return found, err
	}
	err = decodeMailLog(log, l.project, p, rec)
	return err == nil && l.matches(log), err
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
