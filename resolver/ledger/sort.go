package ledger

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"time"

	"fingerpost/resolver/catalog"
)

// sortCreated is the order in which the entries lie.
const sortCreated = "createdAt"

// A mailSort is an order of the list: key appends what sorts, as bytes, as the field of the row does.
type mailSort struct {
	field string
	key   func(dst []byte, l *catalog.MailLog) []byte
}

func sortInt(dst []byte, v int64) []byte { return binary.BigEndian.AppendUint64(dst, uint64(v)^1<<63) }

// sortTime puts the times that are null before all others.
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

// MailSorts are the fields by which MailLogs sorts: all that are in a row of the list.
func MailSorts() []string {
	fields := make([]string, len(mailSorts))
	for i := range mailSorts {
		fields[i] = mailSorts[i].field
	}
	return fields
}

// maxSorted is how many entries an order by another field than createdAt has in memory at a time, with what they are
// sorted by.
const maxSorted = 32 << 10

// A sortItem is an entry with what it is sorted by. No two are equal.
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

func (i *sortItem) set(j *sortItem) { i.key, i.pos = append(i.key[:0], j.key...), j.pos }

// sorted finds the page by a walk through all entries, or a few.
func (l *mailList) sorted(key func([]byte, *catalog.MailLog) []byte) (page []catalog.MailLog, total int, err error) {
	items, total, err := l.pick(key)
	if err != nil {
		return nil, 0, err
	}
	it := l.it
	for i := range items { // all of them lie within the bounds of the walk
		if !it.SeekGE(l.logKey(items[i].pos)) || !bytes.Equal(it.Key(), l.key) {
			return nil, 0, joined(it.Error(), errRecord)
		}
		rec, err := it.ValueAndErr()
		if err != nil {
			return nil, 0, err
		}
		page = append(page, catalog.MailLog{})
		if err := decodeMailLog(&page[i], l.project, items[i].pos, bytes.Clone(rec)); err != nil {
			return nil, 0, err
		}
	}
	return page, total, nil
}

// A selection is one walk of pick: the items that come right behind a bound, and a sample of all behind it.
type selection struct {
	sign    int // -1 in descending order
	bound   *sortItem
	limit   int // of nearest
	nearest []sortItem
	cut     *sortItem // the last of the nearest when they were cut last
	sample  []sortItem
	behind  int // entries behind the bound
	upTo    int // entries up to it
}

func (s *selection) compare(a, b *sortItem) int { return s.sign * a.compare(b) }

func (s *selection) take(item *sortItem) {
	if s.bound != nil && s.compare(item, s.bound) <= 0 {
		s.upTo++
		return
	}
	s.behind++
	if len(s.sample) < sampleSize {
		s.sample = append(s.sample, sortItem{})
		s.sample[len(s.sample)-1].set(item)
	} else if i := rand.IntN(s.behind); i < sampleSize {
		s.sample[i].set(item)
	}
	if s.cut != nil && s.compare(item, s.cut) > 0 {
		return
	}
	s.nearest = append(s.nearest, sortItem{})
	s.nearest[len(s.nearest)-1].set(item)
	if len(s.nearest) >= 2*s.limit {
		s.trim()
	}
}

func (s *selection) sort(items []sortItem) {
	slices.SortFunc(items, func(a, b sortItem) int { return s.compare(&a, &b) })
}

func (s *selection) trim() {
	s.sort(s.nearest)
	if len(s.nearest) > s.limit {
		clear(s.nearest[s.limit:])
		s.nearest = s.nearest[:s.limit]
		s.cut = &sortItem{key: slices.Clone(s.nearest[s.limit-1].key), pos: s.nearest[s.limit-1].pos}
	}
}

// sampleSize makes the rank of an entry known to about half a percent.
const sampleSize = 8 << 10

// pick returns the items of the page. A page among the first takes one walk. For one further down, a sample of the first
// walk tells where its items begin, about; the next walk counts what is before that bound and keeps what follows it. A
// bound that turns out to lie behind the page's beginning is given up for one that is known not to.
func (l *mailList) pick(key func([]byte, *catalog.MailLog) []byte) (items []sortItem, total int, err error) {
	var sure, bound *sortItem // sure lies before the page
	margin := sampleSize / 64
	for {
		s := selection{sign: -1, bound: bound, limit: max(maxSorted/2, l.q.Limit)}
		if l.q.Ascending {
			s.sign = 1
		}
		var item sortItem
		if err := l.walk(true, func(p mailPos, _ []byte, log *catalog.MailLog) error {
			item.key, item.pos = key(item.key[:0], log), p
			s.take(&item)
			return nil
		}); err != nil {
			return nil, 0, err
		}
		s.trim()
		total = s.upTo + s.behind
		skip, n := l.window(total)
		switch rank := skip - s.upTo; { // of the page's first item behind the bound
		case n == 0:
			return nil, total, nil
		case rank < 0:
			bound, margin = sure, 2*margin
		case rank+n <= len(s.nearest):
			return s.nearest[rank : rank+n], total, nil
		case rank < len(s.nearest):
			bound = &s.nearest[rank-1] // rank is not 0: as many as a page has are always there
			sure = bound
		default:
			sure = &s.nearest[len(s.nearest)-1]
			bound = s.guess(rank, margin, sure)
		}
	}
}

// guess returns an item that lies somewhat before one with a rank behind the bound, and never before least.
func (s *selection) guess(rank, margin int, least *sortItem) *sortItem {
	s.sort(s.sample)
	at := int(float64(rank)/float64(s.behind)*float64(len(s.sample))) - margin
	if at < 0 || s.compare(&s.sample[at], least) < 0 {
		return least
	}
	return &s.sample[at]
}
