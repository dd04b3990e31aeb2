package ledger

import (
	"bytes"
	"encoding/binary"
	"slices"
	"time"

	"fingerpost/resolver/catalog"
)

// sortCreated is the order in which entries are stored.
const sortCreated = "createdAt"

// A mailSort is an order of the list: key appends bytes that sort like the field of the row.
type mailSort struct {
	field string
	key   func(dst []byte, l *catalog.MailLog) []byte
}

func sortInt(dst []byte, v int64) []byte { return binary.BigEndian.AppendUint64(dst, uint64(v)^1<<63) }

// sortTime sorts null times before all others.
func sortTime(dst []byte, t time.Time) []byte {
	if t.IsZero() {
		return dst
	}
	return appendMicros(dst, t)
}

func sortText(get func(l *catalog.MailLog) string) func([]byte, *catalog.MailLog) []byte {
	return func(dst []byte, l *catalog.MailLog) []byte { return append(dst, get(l)...) }
}

var mailSorts = []mailSort{
	{"id", func(dst []byte, l *catalog.MailLog) []byte { return sortInt(dst, l.ID) }},
	{"projectId", func(dst []byte, l *catalog.MailLog) []byte { return dst }}, // one project's
	{"providerType", sortText(func(l *catalog.MailLog) string { return l.ProviderType })},
	{"toEmail", sortText(func(l *catalog.MailLog) string { return l.ToEmail })},
	{"subject", sortText(func(l *catalog.MailLog) string { return l.Subject })},
	{"templateCode", sortText(func(l *catalog.MailLog) string { return l.TemplateCode })},
	{"status", sortText(func(l *catalog.MailLog) string { return string(l.Status) })},
	{"errorCode", sortText(func(l *catalog.MailLog) string { return string(l.ErrorCode) })},
	{"errorMessage", sortText(func(l *catalog.MailLog) string { return l.ErrorMessage })},
	{"smtpCode", func(dst []byte, l *catalog.MailLog) []byte { return sortInt(dst, int64(l.SMTPCode)) }},
	{"messageId", sortText(func(l *catalog.MailLog) string { return l.MessageID })},
	{"serviceName", sortText(func(l *catalog.MailLog) string { return l.ServiceName })},
	{"attempts", func(dst []byte, l *catalog.MailLog) []byte { return sortInt(dst, int64(l.Attempts)) }},
	{"uncertain", func(dst []byte, l *catalog.MailLog) []byte {
		e := encoder{dst}
		e.bool(l.Uncertain)
		return e.b
	}},
	{sortCreated, nil}, // the order of the keys
	{"sentAt", func(dst []byte, l *catalog.MailLog) []byte { return sortTime(dst, l.SentAt) }},
	{"nextAttemptAt", func(dst []byte, l *catalog.MailLog) []byte { return sortTime(dst, l.NextAttemptAt) }},
}

// MailSorts returns the fields by which MailLogs sorts: all that are in a row of the list.
func MailSorts() []string {
	fields := make([]string, len(mailSorts))
	for i := range mailSorts {
		fields[i] = mailSorts[i].field
	}
	return fields
}

// maxSorted is how many entries, with their sort keys, one walk finds for a page sorted by a field other than
// createdAt: enough for the first 100 pages of 100 entries.
const maxSorted = 16 << 10

// A sortItem is an entry with its sort key. No two are equal.
type sortItem struct {
	key []byte
	pos mailPos
}

func (i *sortItem) compare(j *sortItem) int {
	if c := bytes.Compare(i.key, j.key); c != 0 {
		return c
	}
	return i.pos.compare(j.pos)
}

// sorted finds the page in one walk through all entries, or in several if it is far down.
func (l *mailList) sorted(key func([]byte, *catalog.MailLog) []byte) (page []catalog.MailLog, total int, err error) {
	items, total, err := l.pick(key)
	if err != nil {
		return nil, 0, err
	}
	it := l.it
	for i := range items { // all of them are within the bounds of the walk
		if !it.SeekGE(l.logKey(items[i].pos)) || !bytes.Equal(it.Key(), l.key) {
			return nil, 0, joined(it.Error(), errRecord)
		}
		rec, err := it.ValueAndErr()
		if err != nil {
			return nil, 0, err
		}
		page = append(page, catalog.MailLog{})
		if err := decodeMailLog(&page[i], l.project, items[i].pos, rec); err != nil {
			return nil, 0, err
		}
	}
	return page, total, nil
}

// A selection keeps the first limit items behind a bound.
type selection struct {
	sign    int       // -1 in descending order
	bound   *sortItem // nil: the beginning
	limit   int
	nearest []sortItem // sorted up to limit once it was cut; at most twice as many
	isCut   bool
}

func (s *selection) compare(a, b *sortItem) int { return s.sign * a.compare(b) }

func (s *selection) take(item *sortItem) {
	if s.bound != nil && s.compare(item, s.bound) <= 0 || s.isCut && s.compare(item, &s.nearest[s.limit-1]) > 0 {
		return
	}
	s.nearest = append(s.nearest, sortItem{slices.Clone(item.key), item.pos})
	if len(s.nearest) >= 2*s.limit {
		s.cut()
	}
}

func (s *selection) cut() {
	slices.SortFunc(s.nearest, func(a, b sortItem) int { return s.compare(&a, &b) })
	if len(s.nearest) > s.limit {
		clear(s.nearest[s.limit:])
		s.nearest, s.isCut = s.nearest[:s.limit], true
	}
}

// pick returns the items of the page. Each walk finds up to maxSorted items; for a page behind them, the next walk
// continues where they end.
func (l *mailList) pick(key func([]byte, *catalog.MailLog) []byte) (items []sortItem, total int, err error) {
	s := selection{sign: -1, limit: max(maxSorted, l.q.Limit)}
	if l.q.Ascending {
		s.sign = 1
	}
	for before := 0; ; { // the number of items up to the bound
		total = 0
		var item sortItem
		err := l.walk(true, func(p mailPos, _ []byte, log *catalog.MailLog) error {
			total++
			item.key, item.pos = key(item.key[:0], log), p
			s.take(&item)
			return nil
		})
		if err != nil {
			return nil, 0, err
		}
		s.cut()
		skip, n := window(l.q.Page, l.q.Limit, total)
		if n == 0 {
			return nil, total, nil
		}
		rank := skip - before // of the page's first item behind the bound
		if rank+n <= len(s.nearest) {
			return s.nearest[rank : rank+n], total, nil
		}
		passed := min(rank, len(s.nearest))
		before += passed
		s.bound, s.nearest, s.isCut = &s.nearest[passed-1], nil, false
	}
}
