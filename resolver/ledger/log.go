package ledger

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"fingerpost/resolver/catalog"

	"github.com/cockroachdb/pebble/v2"
)

// Mail cannot be restored from the files, so each write of it is durable, all or nothing, before it returns. Concurrent
// writes share batches and syncs, see group.go: the turn is held only until a batch is in order and can be read, not
// until it is synced. After ErrUnavailable and ErrDamaged nothing more can be written, and the write may or may not be
// stored. Other errors are ErrNewer, ErrClosed, and those that the methods name.

// Refusals of mail writes; nothing was changed. Test with errors.Is.
var (
	// ErrNoMail: there is no such entry in the mail log.
	ErrNoMail = errors.New("there is no such mail")
	// ErrMailEnded: the mail has its final status.
	ErrMailEnded = errors.New("the mail has reached its end")
)

// mailState is the ledger's state of mail in memory.
type mailState struct {
	turn    chan struct{} // capacity 1; full while a goroutine appends to the order of batches
	queue   mailQueue
	counts  map[int64]mailCounts // of projects, as of that order; guarded by turn
	counted int                  // maxCounted, except in tests
	bound   atomic.Int64         // no higher id has been given out; raised before the batch that stores it is applied
	number  uint64               // of the last write; guarded by turn

	mark    highWater
	missing uint64 // writes, see MailMissing
}

func newMailState() mailState {
	return mailState{turn: make(chan struct{}, 1), counts: make(map[int64]mailCounts), counted: maxCounted}
}

// mailIDsAhead is the number of ids that each mail reserves in advance, so that the next id costs no write: one
// second's worth.
const mailIDsAhead = 1_000_000

func (l *Ledger) loadMailState() error {
	var bound int64
	_, err := now{l.db}.get(keyMailState, func(value []byte) (err error) {
		bound, l.mail.number, err = decodeMailState(value)
		return err
	})
	l.mail.bound.Store(bound)
	if !l.fs.Disk || err != nil {
		return err
	}
	if seen := readHighWater(l.fs.Name()); seen > l.mail.number {
		l.mail.missing = seen - l.mail.number
	}
	if !l.fs.ReadOnly {
		l.mail.mark.name = filepath.Join(l.fs.Name(), highWaterFile)
		l.mail.mark.on.Store(true)
	}
	return nil
}

// decodeMailState returns the bound of reserved ids and the number of the last write.
func decodeMailState(value []byte) (bound int64, number uint64, err error) {
	d, err := mailDecoder(value)
	if err != nil {
		return 0, 0, err
	}
	bound, number = d.fixed(), d.uint()
	return bound, number, d.err()
}

// MailIDBound returns an id that no mail of this ledger and no reservation exceeds.
func (l *Ledger) MailIDBound() int64 { return l.mail.bound.Load() }

// ReserveMailIDs stores that ids up to bound are being given out. With exactly, none above it were.
func (l *Ledger) ReserveMailIDs(bound int64, exactly bool) error {
	return l.writeMail(l.newBatch(), mailSubject{}, func(t *mailTurn) error {
		t.bound = bound
		t.exactly = exactly
		return nil
	})
}

// A mailTurn is one mail write being built: its batch already holds the part that needs no read of the store.
type mailTurn struct {
	l        *Ledger
	b        *pebble.Batch
	bound    int64 // bound of ids to store; 0: unchanged
	exactly  bool  // store it even if it is lower
	refused  error // why nothing is written
	idle     bool  // nothing needs to be written
	unsynced bool  // a synced one follows
	touched  int64 // the project whose counts change
}

func (l *Ledger) newBatch() (b *pebble.Batch) {
	_ = l.fs.Use(func() error { b = l.db.NewBatch(); return nil }) // nil once the store is closed
	return b
}

// writeMail lets finish add to b the part that depends on the store, commits it together with concurrent writes, and
// waits for the disk. finish runs alone, in a goroutine that may never return if the disk has failed; so it must not
// touch its caller's variables.
func (l *Ledger) writeMail(b *pebble.Batch, about mailSubject, finish func(t *mailTurn) error) error {
	if b == nil {
		return ErrClosed
	}
	if err := l.fs.Err(); err != nil {
		return err
	}
	var refused error
	err := l.read(func() error {
		w := &mailWrite{b: b, about: about, finish: finish, done: make(chan mailResult, 1)}
		l.submitMail(w)
		select {
		case r := <-w.done:
			refused = r.refused
			return r.err
		case <-l.fs.Failed():
			return l.fs.Err()
		}
	})
	return errors.Join(refused, err)
}

// note assigns the write's number and raises the bound of ids.
func (t *mailTurn) note() {
	m := &t.l.mail
	if bound := m.bound.Load(); t.bound > bound || t.exactly {
		m.bound.Store(t.bound)
	}
	m.number++
}

// putMailState writes the number of the last write and the bound of ids.
func (l *Ledger) putMailState(b *pebble.Batch) error {
	e := encoder{make([]byte, 0, 20)}
	e.byte(mailVersion)
	e.fixed(l.mail.bound.Load())
	e.uint(l.mail.number)
	return b.Set(keyMailState, e.b, nil)
}

// stored returns the status of an entry, 0 if there is none.
func (t *mailTurn) stored(project int64, p mailPos) (status byte, err error) {
	_, err = now{t.l.db}.get(appendMailKey(nil, project, p), func(rec []byte) (err error) {
		status, err = storedStatus(rec)
		return err
	})
	return status, err
}

// AcceptMail stores a new mail in one batch: its entry, its envelope and message, and the idempotency key if idem is
// not nil. If the key exists and has not expired by now, it stores nothing and returns the existing record, even while
// that record's batch is not durable yet. Times are kept to the microsecond.
func (l *Ledger) AcceptMail(log *catalog.MailLog, mail *catalog.QueuedMail, idem *catalog.Idempotency, now time.Time) (*catalog.Idempotency, error) {
	if err := checkAccepted(log, mail, idem); err != nil {
		return nil, fmt.Errorf("accept a mail: %w", err)
	}
	b := l.newBatch()
	if b == nil {
		return nil, fmt.Errorf("accept a mail: %w", ErrClosed)
	}
	project, id, status, pos := log.ProjectID, log.ID, statusCode(log.Status), posOf(log.CreatedAt, log.ID)
	var key expiringKey
	var expires time.Time
	err := errors.Join(
		b.Set(appendMailKey(nil, project, pos), appendMailLog(nil, log), nil),
		b.Set(appendQueueKey(nil, prefixQueue, id), appendQueued(nil, &queued{project, log.CreatedAt, mail.From, mail.To, mail.ExpiresAt}), nil),
		b.Set(appendQueueKey(nil, prefixMessage, id), mail.Message, nil),
	)
	if idem != nil {
		key, expires = expiringKey{project: project, key: idem.Key}, idem.ExpiresAt
		err = errors.Join(err, b.Set(appendIdempotencyKey(nil, project, idem.Key), appendIdempotency(nil, idem), nil))
	}
	if err != nil {
		return nil, fmt.Errorf("accept a mail: %w", errors.Join(err, b.Close()))
	}
	found := make(chan *catalog.Idempotency, 1) // not a variable: finish may outlive the call
	err = l.writeMail(b, mailSubject{id, key}, func(t *mailTurn) error {
		if key.key != "" {
			there, err := t.replaceable(key, now)
			if err != nil || there != nil {
				found <- there
				t.idle = true
				return err
			}
			if err := t.b.Set(appendExpiryKey(nil, expires, key.project, key.key), nil, nil); err != nil {
				return err
			}
		}
		t.bound = id + mailIDsAhead
		if there, err := t.stored(project, pos); err != nil || there != 0 {
			t.refused = errors.New("there is a mail with this id")
			return err
		}
		return t.count(project, 0, status)
	})
	if err != nil {
		return nil, fmt.Errorf("accept a mail: %w", err)
	}
	select {
	case there := <-found:
		return there, nil
	default:
		return nil, nil
	}
}

func checkAccepted(log *catalog.MailLog, mail *catalog.QueuedMail, idem *catalog.Idempotency) error {
	switch {
	case log.ID <= 0 || log.ProjectID <= 0 || log.CreatedAt.IsZero():
		return errors.New("the entry has no id, project or time")
	case mail.LogID != log.ID || mail.ProjectID != log.ProjectID:
		return errors.New("the entry and the message belong to different mails")
	case idem != nil && (idem.LogID != log.ID || idem.ProjectID != log.ProjectID || idem.Key == ""):
		return errors.New("the idempotency key belongs to another mail, or is empty")
	case log.Status.Ended():
		return errors.New("a mail that has ended is not queued")
	}
	return checkStatus(log)
}

// UpdateMail replaces the entry with that project, createdAt and id. A final status also deletes the queued mail, in
// the same batch. If the entry is missing because the store was damaged, a final one is stored nevertheless and any
// other is an ErrNoMail. An entry with a final status takes no other: ErrMailEnded.
func (l *Ledger) UpdateMail(log *catalog.MailLog) error {
	if err := checkStatus(log); err != nil {
		return fmt.Errorf("update a mail: %w", err)
	}
	b := l.newBatch()
	if b == nil {
		return fmt.Errorf("update a mail: %w", ErrClosed)
	}
	project, id, status, pos := log.ProjectID, log.ID, statusCode(log.Status), posOf(log.CreatedAt, log.ID)
	ended := log.Status.Ended()
	err := b.Set(appendMailKey(nil, project, pos), appendMailLog(nil, log), nil)
	if ended {
		err = errors.Join(err, b.Delete(appendQueueKey(nil, prefixQueue, id), nil), b.Delete(appendQueueKey(nil, prefixMessage, id), nil))
	}
	if err != nil {
		return fmt.Errorf("update a mail: %w", errors.Join(err, b.Close()))
	}
	err = l.writeMail(b, mailSubject{id: id}, func(t *mailTurn) error {
		was, err := t.stored(project, pos)
		switch {
		case err != nil:
			return err
		case was == 0 && !ended:
			t.refused = ErrNoMail
			return nil
		case was != 0 && was != status && statusCodes[was].Ended():
			t.refused = ErrMailEnded
			return nil
		case was == status:
			return nil
		}
		t.bound = id
		return t.count(project, was, status)
	})
	if err != nil {
		return fmt.Errorf("update a mail: %w", err)
	}
	return nil
}

// ForgetMail deletes mails whose AcceptMail failed but may have been stored, with the idempotency keys that refer to
// them. It keeps a mail with a recorded attempt, except the first one of a mail accepted as SENDING, which cannot have
// happened. Unknown ids are ignored.
func (l *Ledger) ForgetMail(ids []int64) error {
	for _, id := range ids {
		err := l.writeMail(l.newBatch(), mailSubject{}, func(t *mailTurn) error { return t.forget(id) })
		if err != nil {
			return fmt.Errorf("forget a mail: %w", err)
		}
	}
	return nil
}

func (t *mailTurn) forget(id int64) error {
	q, there, err := t.l.queued(id)
	if err != nil || !there {
		t.idle = true
		return err
	}
	pos := posOf(q.created, id)
	var log catalog.MailLog
	_, err = now{t.l.db}.get(appendMailKey(nil, q.project, pos), func(rec []byte) error {
		return decodeMailLog(&log, q.project, pos, rec)
	})
	status := log.Status
	asAccepted := !status.Ended() && (log.Attempts == 0 || log.Attempts == 1 && status == catalog.MailSending)
	if err != nil || !asAccepted {
		t.idle = true
		return err
	}
	err = errors.Join(
		t.b.Delete(appendMailKey(nil, q.project, pos), nil),
		t.b.Delete(appendQueueKey(nil, prefixQueue, id), nil),
		t.b.Delete(appendQueueKey(nil, prefixMessage, id), nil),
		t.count(q.project, statusCode(status), 0))
	if err != nil {
		return err
	}
	return t.forgetKeys(q.project, id)
}
