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

// Mail is what nobody can have back from the files, so each of its writes is on the disk, all of it or nothing, before it
// returns. Many at a time share batches and syncs, see mailgroup.go: turn is held only until a batch is in its place among the
// others and can be read, not until it is synced. Errors are ErrUnavailable and ErrDamaged, and then nothing more can be written and
// what was to be written may or may not be there; ErrNewer; ErrClosed; and those that the methods name.

// What the writes of mail refuse; nothing was changed. Test with errors.Is.
var (
	// ErrNoMail: there is no such entry in the mail log.
	ErrNoMail = errors.New("there is no such mail")
	// ErrMailEnded: nothing can change any more.
	ErrMailEnded = errors.New("the mail has reached its end")
)

// mailState is what a store keeps in memory of its mail.
type mailState struct {
	turn    chan struct{} // of capacity 1; full while somebody adds to the order of mail's batches
	queue   mailQueue
	counts  map[int64]mailCounts // of projects, as that order has them; guarded by turn
	counted int                  // maxCounted, but in tests
	bound   atomic.Int64         // no id above it has been given out; what the store holds of it, raised before the batch is applied
	number  uint64               // of the last write; guarded by turn

	mark    highWater
	missing uint64 // writes, see MailMissing
}

func newMailState() mailState {
	return mailState{turn: make(chan struct{}, 1), counts: make(map[int64]mailCounts), counted: maxCounted}
}

// mailIDsAhead is how far the bound of ids is moved with each mail, so that giving out the next one costs no write: one
// second of ids.
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

// decodeMailState returns the bound of ids and the number of the last write.
func decodeMailState(value []byte) (bound int64, number uint64, err error) {
	d, err := mailDecoder(value)
	if err != nil {
		return 0, 0, err
	}
	bound, number = d.fixed(), d.uint()
	return bound, number, d.err()
}

// MailIDBound returns an id that no mail of this store has passed, nor any that ReserveMailIDs was told of.
func (l *Ledger) MailIDBound() int64 { return l.mail.bound.Load() }

// ReserveMailIDs notes that ids up to bound are being given out. Where exactly is set, none above it were.
func (l *Ledger) ReserveMailIDs(bound int64, exactly bool) error {
	return l.writeMail(l.newBatch(), mailSubject{}, func(t *mailTurn) error {
		t.bound = bound
		t.exactly = exactly
		return nil
	})
}

// A mailTurn is one write of mail in the making: the batch has what needs no look at the store already.
type mailTurn struct {
	l        *Ledger
	b        *pebble.Batch
	bound    int64 // of ids, to be noted; 0: as it is
	exactly  bool  // also where it is lower
	refused  error // nothing is written, and this is why
	idle     bool  // nothing is written, and that is well
	unsynced bool  // a synced one follows
	touched  int64 // the project whose counts are changed
}

func (l *Ledger) newBatch() (b *pebble.Batch) {
	_ = l.fs.Use(func() error { b = l.db.NewBatch(); return nil }) // nil once the store is closed
	return b
}

// writeMail lets finish add to b what depends on the store, commits it, with what others write at the same time, and waits
// for the disk. finish runs alone, in a goroutine that may never return where the disk has failed; so it must not touch what
// is its caller's.
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

// note numbers the write and moves the bound of ids.
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

// stored returns the status of an entry, 0 where there is none.
func (t *mailTurn) stored(project int64, p mailPos) (status byte, err error) {
	_, err = now{t.l.db}.get(appendMailKey(nil, project, p), func(rec []byte) (err error) {
		status, err = storedStatus(rec)
		return err
	})
	return status, err
}

// AcceptMail stores a new mail in one batch: its entry, its envelope and message, and the idempotency key where idem is
// not nil. Where that key is there and has not expired by now, nothing is stored and what is there is returned, also
// while the batch that has it is still on its way to the disk. Times are kept to the microsecond.
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

// UpdateMail replaces an entry, which project, createdAt and id name. With an end as its status the queued mail goes in
// the same batch. Where there is no entry, because the store was damaged, one that ends is stored nevertheless and any
// other is an ErrNoMail; one that has ended takes no other status: ErrMailEnded.
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

// ForgetMail deletes mails whose AcceptMail has failed at a moment at which it may have been stored nevertheless: as long
// as no attempt was noted but the one that an accepted mail may have begun with, of which nothing can have come; and with
// what idempotency keys lead to them. Ids that are not there are fine.
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
