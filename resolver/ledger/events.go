package ledger

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"fingerpost/resolver/catalog"

	"github.com/cockroachdb/pebble/v2"
)

// The events of a ledger are the entries of its audit trail, by id, and the ends of its mails, by a sequence. Nothing
// is stored for each reader: a reader keeps how far it has come.

// EventMarks say which events can be read. An event up to them is durable.
type EventMarks struct {
	Entry, Mail       int64  // the highest ones
	EntryCut, MailCut int64  // retention, or damage, has removed some up to these
	Epoch             string // of the ledger: another one after a restore, and for a ledger that begins empty
}

// marks are the EventMarks of an open ledger.
type marks struct {
	mu      sync.Mutex // guards the fields below
	at      EventMarks
	changed chan struct{} // closed when at changes
}

// Events returns the marks, and a channel that is closed when they change.
func (l *Ledger) Events() (at EventMarks, changed <-chan struct{}) {
	m := &l.marks
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.changed == nil {
		m.changed = make(chan struct{})
	}
	return m.at, m.changed
}

func (m *marks) change(f func(at *EventMarks)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.at
	if f(&m.at); m.at != was && m.changed != nil {
		close(m.changed)
		m.changed = nil
	}
}

// raise notes durable events; 0 changes nothing.
func (m *marks) raise(entry, mail int64) {
	if entry != 0 || mail != 0 {
		m.change(func(at *EventMarks) { at.Entry, at.Mail = max(at.Entry, entry), max(at.Mail, mail) })
	}
}

// HoldEvents hides entries after one until a later entry is appended, or SettleEvents is called. Those of an
// AppendAudit that failed may be on disk, and ForgetAudit removes them.
func (l *Ledger) HoldEvents(entry int64) {
	l.marks.change(func(at *EventMarks) { at.Entry = min(at.Entry, entry) })
}

// SettleEvents shows all entries.
func (l *Ledger) SettleEvents() {
	l.marks.change(func(at *EventMarks) { at.Entry, at.Mail = l.LastAudit(), l.mail.ended.Load() })
}

// loadEvents reads the marks. A new ledger gets an epoch, with b.
func (l *Ledger) loadEvents(b *pebble.Batch) error {
	at := EventMarks{Entry: l.LastAudit()}
	found, err := now{l.db}.get(keyEvents, func(rec []byte) (err error) {
		at.Epoch, at.EntryCut, at.MailCut, err = decodeEvents(rec)
		return err
	})
	if err == nil {
		at.Mail = at.MailCut
		err = l.walk(span{[]byte{prefixEnded}, []byte{prefixEnded + 1}, true}, func(key, _ []byte) (err error) {
			at.Mail, err = lastID(key)
			return joined(err, errStop)
		})
	}
	if err == nil && !found {
		at.Epoch = newEpoch()
		err = b.Set(keyEvents, appendEvents(&at), nil)
	}
	l.mail.ended.Store(at.Mail)
	l.marks.at = at
	return err
}

func newEpoch() string {
	var b [6]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func appendEvents(at *EventMarks) []byte {
	e := encoder{}
	e.byte(mailVersion)
	e.string(at.Epoch)
	e.fixed(at.EntryCut)
	e.fixed(at.MailCut)
	return e.b
}

func decodeEvents(rec []byte) (epoch string, entryCut, mailCut int64, err error) {
	d, err := mailDecoder(rec)
	if err != nil {
		return "", 0, 0, err
	}
	epoch, entryCut, mailCut = d.string(), d.fixed(), d.fixed()
	return epoch, entryCut, mailCut, d.err()
}

// changeEvents stores what f changes in the record of the events. The change shows at once: what it removes from view
// is removed by the same batch.
func (t *mailTurn) changeEvents(f func(at *EventMarks)) error {
	var err error
	t.l.marks.change(func(at *EventMarks) {
		was := *at
		if f(at); *at != was {
			err = t.b.Set(keyEvents, appendEvents(at), nil)
		}
	})
	return err
}

// noteCut notes that entries up to one have been removed.
func (t *mailTurn) noteCut(entry int64) error {
	return t.changeEvents(func(at *EventMarks) { at.EntryCut = max(at.EntryCut, entry) })
}

// NewEpoch gives the ledger another epoch, after a restore: its events get ids that no event had before.
func (l *Ledger) NewEpoch() error {
	err := l.writeMail(l.newBatch(), func(t *mailTurn) error {
		return t.changeEvents(func(at *EventMarks) { at.Epoch = newEpoch() })
	})
	if err != nil {
		return fmt.Errorf("begin an epoch of events: %w", err)
	}
	return nil
}

// An EndedMail says that a mail has reached its end.
type EndedMail struct {
	Seq     int64
	Project int64
	Log     int64 // id of its entry in the mail log
	Status  catalog.MailStatus
	Time    time.Time // when it ended
}

func appendEndedKey(dst []byte, seq int64) []byte { return appendID(append(dst, prefixEnded), seq) }

func appendEnded(m *EndedMail) []byte {
	e := encoder{}
	if m.Status == catalog.MailSuppressed {
		e.byte(suppressedRecord)
	} else {
		e.byte(mailVersion)
	}
	e.byte(statusCode(m.Status))
	e.fixed(m.Project)
	e.fixed(m.Log)
	e.micros(m.Time)
	return e.b
}

func decodeEnded(rec []byte) (m EndedMail, err error) {
	if err := checkVersion(rec, suppressedRecord); err != nil {
		return m, err
	}
	d := decoder{s: string(rec[1:])}
	status := d.byte()
	if int(status) >= len(statusCodes) {
		return m, errRecord
	}
	m = EndedMail{Status: statusCodes[status], Project: d.fixed(), Log: d.fixed(), Time: d.micros()}
	return m, d.err()
}

// noteEnded adds the next row of the index of ended mails.
func (t *mailTurn) noteEnded(project, log int64, status byte, at time.Time) error {
	t.ended = t.l.mail.ended.Add(1)
	row := EndedMail{Project: project, Log: log, Status: statusCodes[status], Time: at}
	return t.b.Set(appendEndedKey(nil, t.ended), appendEnded(&row), nil)
}

// EndedSince calls f with the mails that have ended after a place in the sequence, in its order, until it returns
// false. f must not call the Ledger.
func (l *Ledger) EndedSince(seq int64, f func(m *EndedMail) (more bool)) error {
	s := span{lower: appendEndedKey(nil, seq+1), upper: []byte{prefixEnded + 1}}
	return l.scan(s, func(key, rec []byte) error {
		m, err := decodeEnded(rec)
		if err == nil {
			m.Seq, err = lastID(key)
		}
		if err == nil && !f(&m) {
			err = errStop
		}
		return err
	})
}

// pruneEnded removes rows from the beginning of the index that are older than a moment.
func (l *Ledger) pruneEnded(before time.Time) error {
	for more := true; more; {
		var err error
		if more, err = l.steps(func(t *mailTurn) (bool, error) { return t.cutEnded(before) }); err != nil {
			return err
		}
	}
	return nil
}

func (t *mailTurn) cutEnded(before time.Time) (more bool, err error) {
	n, last := 0, int64(0)
	err = t.l.walk(under(prefixEnded), func(key, rec []byte) error {
		m, err := decodeEnded(rec)
		if err != nil || !m.Time.Before(before) {
			return joined(err, errStop)
		}
		if n++; n > entriesPerTurn {
			more = true
			return errStop
		}
		last, err = lastID(key)
		return err
	})
	if err != nil || last == 0 {
		return false, err
	}
	return more, errors.Join(t.b.DeleteRange([]byte{prefixEnded}, appendEndedKey(nil, last+1), nil),
		t.changeEvents(func(at *EventMarks) { at.MailCut = max(at.MailCut, last) }))
}

// AuditEntry returns an entry of the trail, with its commit if that is known; false if there is none.
func (l *Ledger) AuditEntry(id int64) (e catalog.AuditEntry, found bool, err error) {
	err = l.read(func() (err error) {
		key := appendAuditKey(nil, id)
		found, err = now{l.db}.get(key, func(rec []byte) error { return decodeAudit(&e, key, rec) })
		if err == nil && found {
			err = l.joinCommit(&e)
		}
		return err
	})
	return e, found, err
}

// EntriesSince calls f with the entries of the trail whose id is higher than id, the oldest first, until it returns
// false. f must not call the Ledger.
func (l *Ledger) EntriesSince(id int64, f func(e *catalog.AuditEntry) (more bool)) error {
	return l.AuditSince(id, func(e *catalog.AuditEntry) error {
		if !f(e) {
			return errStop
		}
		return nil
	})
}

// ProjectEntriesSince is EntriesSince for the entries of one project; with project 0 for those of none.
func (l *Ledger) ProjectEntriesSince(project, id int64, f func(e *catalog.AuditEntry) (more bool)) error {
	s := span{lower: appendAuditOfKey(nil, project, id+1), upper: appendAuditOfKey(nil, project, -1)}
	return l.scan(s, func(key, _ []byte) error {
		key = appendAuditKey(nil, auditID(key))
		var e catalog.AuditEntry
		found, err := now{l.db}.get(key, func(rec []byte) error { return decodeAudit(&e, key, rec) })
		if err == nil && found && !f(&e) { // otherwise retention has just removed it
			err = errStop
		}
		return err
	})
}

// putEvents takes over the epoch of a damaged ledger and what was cut there. Where events may be lost, their ids must
// not be given out again, and readers are told of a gap.
func (v *Salvage) putEvents(_, rec []byte) error {
	epoch, entryCut, mailCut, err := decodeEvents(rec)
	if err != nil {
		return err
	}
	return v.turn(func(t *mailTurn) error {
		return t.changeEvents(func(at *EventMarks) {
			at.Epoch, at.EntryCut, at.MailCut = epoch, max(at.EntryCut, entryCut), max(at.MailCut, mailCut)
		})
	})
}

// skippedAfterDamage is how many numbers of ended mails a salvage leaves out: more than can have been lost.
const skippedAfterDamage = 1 << 30

// noteLostEvents leaves a gap after the events that could be read.
func (v *Salvage) noteLostEvents() error {
	return v.turn(func(t *mailTurn) error {
		seq := t.l.mail.ended.Add(skippedAfterDamage)
		return t.changeEvents(func(at *EventMarks) {
			at.EntryCut, at.Mail, at.MailCut = max(at.EntryCut, t.l.LastAudit()), seq, max(at.MailCut, seq)
		})
	})
}

// putEndedMail copies a row of the index; the next one gets a later place.
func (v *Salvage) putEndedMail(key, rec []byte) error {
	seq, err := lastID(key)
	if err != nil {
		return err
	}
	if _, err := decodeEnded(rec); err != nil {
		return err
	}
	if err := v.put(key, rec); err != nil {
		return err
	}
	if m := &v.to.mail; seq > m.ended.Load() {
		m.ended.Store(seq)
	}
	return nil
}
