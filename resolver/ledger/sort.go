package ledger

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
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

// maxSorted is how many entries, with their sort keys, are held in memory to sort by a field other than createdAt.
const maxSorted = 32 << 10

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

func (i *sortItem) set(j *sortItem) { i.key, i.pos = append(i.key[:0], j.key...), j.pos }

// sorted finds the page in one or a few walks through all entries.
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
		if err := decodeMailLog(&page[i], l.project, items[i].pos, bytes.Clone(rec)); err != nil {
			return nil, 0, err
		}
	}
	return page, total, nil
}

// A selection is the result of one walk of pick: the items right behind a bound, and a sample of all items behind it.
type selection struct {
	sign    int // -1 in descending order
	bound   *sortItem
	limit   int // of nearest
	nearest []sortItem
	cut     *sortItem // the last of nearest when it was last cut
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

// sampleSize gives the rank of an entry to about half a percent.
const sampleSize = 8 << 10

// pick returns the items of the page. An early page takes one walk. For a later page, a sample of the first walk
// estimates where its items begin; the next walk counts the items before that bound and keeps those behind it. If the
// bound turns out to be behind the page's beginning, pick falls back to one that is known to be before it.
func (l *mailList) pick(key func([]byte, *catalog.MailLog) []byte) (items []sortItem, total int, err error) {
	var sure, bound *sortItem // sure is before the page
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
		switch rank := skip - s.upTo; { // rank of the page's first item behind the bound
		case n == 0:
			return nil, total, nil
		case rank < 0:
			bound, margin = sure, 2*margin
		case rank+n <= len(s.nearest):
			return s.nearest[rank : rank+n], total, nil
		case rank < len(s.nearest):
			bound = &s.nearest[rank-1] // rank is not 0: nearest has at least a page of items
			sure = bound
		default:
			sure = &s.nearest[len(s.nearest)-1]
			bound = s.guess(rank, margin, sure)
		}
	}
}

// guess returns an item with an estimated rank somewhat below the wanted one, and never before least.
func (s *selection) guess(rank, margin int, least *sortItem) *sortItem {
	s.sort(s.sample)
	at := int(float64(rank)/float64(s.behind)*float64(len(s.sample))) - margin
	if at < 0 || s.compare(&s.sample[at], least) < 0 {
		return least
	}
	return &s.sample[at]
}
