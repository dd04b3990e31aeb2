package ledger

import (
	"fmt"
	"time"

	"fingerpost/resolver/catalog"
)

// mailVersion is the first byte of every mail record. A record of a later release is an ErrNewer.
const mailVersion = 1

// logVersion is the version of an entry with a history, againVersion of one that also names an earlier entry,
// localeVersion of one that also has a locale, and suppressedVersion of one that is SUPPRESSED, with the layout of
// localeVersion. Others have mailVersion.
const (
	logVersion        = 2
	againVersion      = 3
	localeVersion     = 4
	suppressedVersion = 5
)

// suppressedRecord is the version of other records of mail that know of suppression lists: of a queued mail with a
// category or with reasons that it ignores, of an ended mail that is SUPPRESSED, and of counts.
const suppressedRecord = 2

// statusCodes maps the statuses of a mail to bytes, from 1 on.
var statusCodes = [...]catalog.MailStatus{
	1: catalog.MailPending, catalog.MailSending, catalog.MailRetrying, catalog.MailSent, catalog.MailFailed,
	catalog.MailExpired, catalog.MailSuppressed,
}

// statusCode returns 0 for an unknown status.
func statusCode(s catalog.MailStatus) byte {
	for c := 1; c < len(statusCodes); c++ {
		if statusCodes[c] == s {
			return byte(c)
		}
	}
	return 0
}

// offsetStatus is the offset of the status byte in an entry.
const offsetStatus = 1

// mailDecoder checks and skips the version of a mail record.
func mailDecoder(b []byte) (decoder, error) {
	if err := checkVersion(b, mailVersion); err != nil {
		return decoder{}, err
	}
	return decoder{s: string(b[1:])}, nil
}

func checkVersion(b []byte, known byte) error {
	switch {
	case len(b) == 0 || b[0] < mailVersion:
		return errRecord
	case b[0] > known:
		return fmt.Errorf("%w: it has a record of mail of version %d, this release knows up to %d", ErrNewer, b[0],
			known)
	}
	return nil
}

// maybe writes a time to the microsecond; the zero time takes one byte.
func (e *encoder) maybe(t time.Time) {
	e.bool(!t.IsZero())
	if !t.IsZero() {
		e.micros(t)
	}
}

func (d *decoder) maybe() time.Time {
	if d.bool() {
		return d.micros()
	}
	return time.Time{}
}

// appendMailLog omits the fields in the key: project, createdAt and id.
func appendMailLog(dst []byte, l *catalog.MailLog) []byte {
	e := encoder{dst}
	version := byte(mailVersion)
	switch {
	case l.Status == catalog.MailSuppressed:
		version = suppressedVersion
	case l.Locale != "":
		version = localeVersion
	case l.AgainOf != 0:
		version = againVersion
	case len(l.History) > 0:
		version = logVersion
	}
	e.byte(version)
	e.byte(statusCode(l.Status))
	e.bool(l.Uncertain)
	e.string(l.ToEmail)
	e.string(l.TemplateCode)
	e.string(l.ProviderType)
	e.string(l.Subject)
	e.string(string(l.ErrorCode))
	e.string(l.ErrorMessage)
	e.int(int64(l.SMTPCode))
	e.string(l.MessageID)
	e.string(l.ServiceName)
	e.int(int64(l.Attempts))
	e.maybe(l.SentAt)
	e.maybe(l.NextAttemptAt)
	if version >= localeVersion {
		e.string(l.Locale)
	}
	if version >= againVersion {
		e.int(l.AgainOf)
	}
	if version >= logVersion {
		e.uint(uint64(len(l.History)))
	}
	for _, a := range l.History {
		e.int(int64(a.Number))
		e.micros(a.At)
		e.string(a.Stage)
		e.string(string(a.Code))
		e.int(int64(a.SMTPCode))
		e.string(a.Message)
	}
	return e.b
}

// history reads the attempts of an entry, at least some.
func (d *decoder) history(least uint64) (all []catalog.MailAttempt) {
	n := d.uint()
	if n < least || n > catalog.MaxMailHistory {
		d.fail()
		return nil
	}
	for range n {
		all = append(all, catalog.MailAttempt{Number: int(d.int()), At: d.micros(), Stage: d.string(),
			Code: catalog.Code(d.string()), SMTPCode: int(d.int()), Message: d.string()})
	}
	return all
}

func decodeMailLog(dst *catalog.MailLog, project int64, at mailPos, rec []byte) error {
	if err := checkVersion(rec, suppressedVersion); err != nil {
		return err
	}
	d := decoder{s: string(rec[1:])}
	status := d.byte()
	if status == 0 || int(status) >= len(statusCodes) {
		return errRecord
	}
	*dst = catalog.MailLog{
		ID: at.id(), ProjectID: project, CreatedAt: at.created(), Status: statusCodes[status],
		Uncertain: d.bool(), ToEmail: d.string(), TemplateCode: d.string(), ProviderType: d.string(), Subject: d.string(),
		ErrorCode: catalog.Code(d.string()), ErrorMessage: d.string(), SMTPCode: int(d.int()), MessageID: d.string(),
		ServiceName: d.string(), Attempts: int(d.int()), SentAt: d.maybe(), NextAttemptAt: d.maybe(),
	}
	switch rec[0] {
	case suppressedVersion, localeVersion:
		dst.Locale, dst.AgainOf, dst.History = d.string(), d.int(), d.history(0)
	case againVersion:
		dst.AgainOf, dst.History = d.int(), d.history(0)
	case logVersion:
		dst.History = d.history(1)
	}
	return d.err()
}

// storedStatus returns the status of an entry without decoding the rest.
func storedStatus(rec []byte) (byte, error) {
	if err := checkVersion(rec, suppressedVersion); err != nil {
		return 0, err
	}
	if len(rec) <= offsetStatus || rec[offsetStatus] == 0 || int(rec[offsetStatus]) >= len(statusCodes) {
		return 0, errRecord
	}
	return rec[offsetStatus], nil
}

// A queued is the queue's record of a mail: its envelope and the position of its log entry.
type queued struct {
	project   int64
	created   time.Time
	from, to  string
	expiresAt time.Time
	category  string
	ignored   reasons
}

// reasons are a set of reasons of suppression lists, a bit for each.
type reasons uint64

func reasonsOf(list []catalog.SuppressionReason) (set reasons) {
	for _, r := range list {
		set |= 1 << r.Strength()
	}
	return set
}

func (set reasons) list() (list []catalog.SuppressionReason) {
	for _, name := range catalog.SuppressionReasons {
		if r := catalog.SuppressionReason(name); set&(1<<r.Strength()) != 0 {
			list = append(list, r)
		}
	}
	return list
}

func appendQueued(dst []byte, q *queued) []byte {
	e := encoder{dst}
	more := q.category != "" || q.ignored != 0
	if more {
		e.byte(suppressedRecord)
	} else {
		e.byte(mailVersion)
	}
	e.fixed(q.project)
	e.micros(q.created)
	e.string(q.from)
	e.string(q.to)
	e.maybe(q.expiresAt)
	if more {
		e.string(q.category)
		e.uint(uint64(q.ignored))
	}
	return e.b
}

func decodeQueued(rec []byte) (q queued, err error) {
	if err := checkVersion(rec, suppressedRecord); err != nil {
		return q, err
	}
	d := decoder{s: string(rec[1:])}
	q = queued{project: d.fixed(), created: d.micros(), from: d.string(), to: d.string(), expiresAt: d.maybe()}
	if rec[0] == suppressedRecord {
		q.category, q.ignored = d.string(), reasons(d.uint())
	}
	return q, d.err()
}

func appendIdempotency(dst []byte, i *catalog.Idempotency) []byte {
	e := encoder{dst}
	e.byte(mailVersion)
	e.raw(i.Request[:])
	e.fixed(i.LogID)
	e.micros(i.ExpiresAt)
	e.bool(i.Answer != nil) // nil: no answer yet
	if i.Answer != nil {
		e.uint(uint64(len(i.Answer)))
		e.raw(i.Answer)
	}
	return e.b
}

func decodeIdempotency(project int64, key string, rec []byte) (*catalog.Idempotency, error) {
	d, err := mailDecoder(rec)
	if err != nil {
		return nil, err
	}
	i := &catalog.Idempotency{ProjectID: project, Key: key, Request: d.hash(), LogID: d.fixed(), ExpiresAt: d.micros()}
	if d.bool() {
		i.Answer = append([]byte{}, d.string()...)
	}
	if err := d.err(); err != nil {
		return nil, err
	}
	return i, nil
}
