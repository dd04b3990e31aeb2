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

// Mail cannot be restored from the files, so each write of it is durable, all or nothing, before it returns. A write
// holds the turn while it reads the ledger and puts its batch in order, not while it waits for the sync: the batches of
// concurrent writes share syncs. After ErrUnavailable and ErrDamaged nothing more can be written, and the write may or
// may not be stored. Other errors are ErrNewer, ErrClosed, and those that the methods name.

// Refusals of mail writes; nothing was changed. Test with errors.Is.
var (
	// ErrNoMail: there is no such entry in the mail log.
	ErrNoMail = errors.New("there is no such mail")
	// ErrMailEnded: the mail has its final status.
	ErrMailEnded = errors.New("the mail has reached its end")
)

// mailState is the ledger's state of mail in memory.
type mailState struct {
	turn   chan struct{} // capacity 1: a mutex for the order of batches, and a wait for it ends when the disk fails
	bound  atomic.Int64  // no higher id has been given out; raised before the batch that stores it is applied
	number uint64        // of the last write; guarded by turn

	ended  atomic.Int64 // number of the last mail that has ended; changed with the turn
	spread atomic.Int64 // the largest distance of an entry, see noteSpread; at least nearID. Changed with the turn

	newest  newestMail
	mark    highWater
	missing uint64 // writes, see MailMissing
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
	if err == nil {
		err = l.loadSpread()
	}
	if !l.fs.Disk || err != nil {
		return err
	}
	if seen := readHighWater(l.fs.Name()); seen > l.mail.number {
		l.mail.missing = seen - l.mail.number
	}
	if !l.fs.ReadOnly {
		l.mail.mark.name = filepath.Join(l.fs.Name(), highWaterFile)
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
	return l.writeMail(l.newBatch(), func(t *mailTurn) error {
		t.bound = bound
		t.exactly = exactly
		return nil
	})
}

// A mailTurn is one mail write being built: its batch already holds the part that needs no read of the ledger.
type mailTurn struct {
	l        *Ledger
	b        *pebble.Batch
	bound    int64 // bound of ids to store; 0: unchanged
	spread   int64 // mailState.spread from this write on; 0: unchanged
	exactly  bool  // store bound even if it is lower
	refused  error // why nothing is written
	idle     bool  // nothing needs to be written
	unsynced bool  // a synced one follows
	entry    int64 // the highest entry of the trail that it appends; 0: none
	ended    int64 // the place of the mail that it ends, in the index; 0: none
}

func (l *Ledger) newBatch() (b *pebble.Batch) {
	_ = l.fs.Use(func() error { b = l.db.NewBatch(); return nil }) // nil once the ledger is closed
	return b
}

// writeMail lets finish add to b the part that depends on the ledger, commits it, and waits for the disk. finish runs
// with the turn, in a goroutine that never returns if the disk fails; so it must not touch its caller's variables.
func (l *Ledger) writeMail(b *pebble.Batch, finish func(t *mailTurn) error) error {
	if b == nil {
		return ErrClosed
	}
	if err := l.fs.Err(); err != nil {
		return err
	}
	refused := make(chan error, 1)
	err := l.read(func() error {
		return l.fs.Run(func() error {
			t := mailTurn{l: l, b: b}
			err := errors.Join(t.write(finish), b.Close())
			refused <- t.refused
			return err
		})
	})
	if err != nil {
		return err
	}
	return <-refused
}

// write takes the turn, builds the batch and applies it, and then waits until it is durable.
func (t *mailTurn) write(finish func(t *mailTurn) error) error {
	l := t.l
	select {
	case l.mail.turn <- struct{}{}:
	case <-l.fs.Failed():
		return l.fs.Err()
	}
	number, err := t.apply(finish)
	<-l.mail.turn
	if err != nil {
		return err
	}
	if t.synced() {
		if err := t.b.SyncWait(); err != nil {
			return err
		}
		l.mail.mark.ack(number)
		if err := l.Check(); err != nil { // writes into a deleted directory are lost
			return err
		}
	}
	l.marks.raise(t.entry, t.ended) // earlier batches are durable by now, too
	return nil
}

// synced reports whether the write waits for the disk: a ledger in memory has no log.
func (t *mailTurn) synced() bool { return t.l.dir != "" && !t.unsynced && !t.idle && t.refused == nil }

// apply builds the batch and makes it readable. It returns the number of the write.
func (t *mailTurn) apply(finish func(t *mailTurn) error) (number uint64, err error) {
	m := &t.l.mail
	if err := finish(t); err != nil || t.refused != nil {
		return 0, err
	}
	if t.idle = t.idle || t.b.Empty() && t.bound == 0; t.idle {
		return 0, nil
	}
	if t.bound > m.bound.Load() || t.exactly {
		m.bound.Store(t.bound)
	}
	if t.spread > 0 {
		m.spread.Store(t.spread)
	}
	m.number++
	if err := t.putMailState(); err != nil {
		return 0, err
	}
	if t.synced() {
		return m.number, t.l.db.ApplyNoSyncWait(t.b, pebble.Sync)
	}
	return m.number, t.b.Commit(pebble.NoSync)
}

// putMailState writes the number of the last write and the bound of ids.
func (t *mailTurn) putMailState() error {
	e := encoder{make([]byte, 0, 20)}
	e.byte(mailVersion)
	e.fixed(t.l.mail.bound.Load())
	e.uint(t.l.mail.number)
	return t.b.Set(keyMailState, e.b, nil)
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
// not nil. A SUPPRESSED one has ended already, and mail is nil. If the key exists and has not expired by now, it stores
// nothing and returns the existing record, even while that record's batch is not durable yet. Times are kept to the
// microsecond. The id is new to the ledger: it comes from resolver.NewMailID, whose reservations on disk prove that, so
// nothing is looked up here.
func (l *Ledger) AcceptMail(log *catalog.MailLog, mail *catalog.QueuedMail, idem *catalog.Idempotency,
	now time.Time) (*catalog.Idempotency, error) {
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
	err := setMail(b, log, mail)
	if idem != nil {
		key, expires = expiringKey{project: project, key: idem.Key}, idem.ExpiresAt
		err = errors.Join(err, b.Set(appendIdempotencyKey(nil, project, idem.Key), appendIdempotency(nil, idem), nil))
	}
	if err != nil {
		return nil, fmt.Errorf("accept a mail: %w", errors.Join(err, b.Close()))
	}
	found := make(chan *catalog.Idempotency, 1) // not a variable: finish may outlive the call
	err = l.writeMail(b, func(t *mailTurn) error {
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
		if statusCodes[status].Ended() {
			if err := t.noteEnded(project, id, status, time.Now()); err != nil {
				return err
			}
		}
		return errors.Join(t.noteSpread(log), t.count(project, 0, status))
	})
	if err != nil {
		return nil, fmt.Errorf("accept a mail: %w", err)
	}
	select {
	case there := <-found:
		return there, nil
	default:
		l.mail.newest.raise(project, pos)
		return nil, nil
	}
}

// setMail adds an entry to a batch, and its queued mail unless that is nil.
func setMail(b *pebble.Batch, log *catalog.MailLog, mail *catalog.QueuedMail) error {
	err := b.Set(appendMailKey(nil, log.ProjectID, posOf(log.CreatedAt, log.ID)), appendMailLog(nil, log), nil)
	if mail == nil {
		return err
	}
	q := queued{log.ProjectID, log.CreatedAt, mail.From, mail.To, mail.ExpiresAt, mail.Category, reasonsOf(mail.Ignored)}
	return errors.Join(err, b.Set(appendQueueKey(nil, prefixQueue, log.ID), appendQueued(nil, &q), nil),
		b.Set(appendQueueKey(nil, prefixMessage, log.ID), mail.Message, nil))
}

func checkAccepted(log *catalog.MailLog, mail *catalog.QueuedMail, idem *catalog.Idempotency) error {
	switch {
	case log.ID <= 0 || log.ProjectID <= 0 || log.CreatedAt.IsZero():
		return errors.New("the entry has no id, project or time")
	case (mail == nil) != (log.Status == catalog.MailSuppressed):
		return errors.New("a mail is stored unless it is suppressed")
	case mail != nil && (mail.LogID != log.ID || mail.ProjectID != log.ProjectID):
		return errors.New("the entry and the message belong to different mails")
	case idem != nil && (idem.LogID != log.ID || idem.ProjectID != log.ProjectID || idem.Key == ""):
		return errors.New("the idempotency key belongs to another mail, or is empty")
	case mail != nil && log.Status.Ended():
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
	u, err := newMailUpdate(b, log)
	if err != nil {
		return fmt.Errorf("update a mail: %w", errors.Join(err, b.Close()))
	}
	if err = l.writeMail(b, u.finish); err != nil {
		return fmt.Errorf("update a mail: %w", err)
	}
	l.mail.newest.raise(u.project, u.pos)
	return nil
}

// A mailUpdate is the update of an entry whose new record is in a batch.
type mailUpdate struct {
	project, id int64
	status      byte
	pos         mailPos
}

// newMailUpdate adds the new record of an entry to a batch, and the deletion of its queued mail if it has ended.
func newMailUpdate(b *pebble.Batch, log *catalog.MailLog) (u mailUpdate, err error) {
	u = mailUpdate{log.ProjectID, log.ID, statusCode(log.Status), posOf(log.CreatedAt, log.ID)}
	err = b.Set(appendMailKey(nil, u.project, u.pos), appendMailLog(nil, log), nil)
	if log.Status.Ended() {
		err = errors.Join(err, b.Delete(appendQueueKey(nil, prefixQueue, u.id), nil),
			b.Delete(appendQueueKey(nil, prefixMessage, u.id), nil))
	}
	return u, err
}

// finish adds what depends on the entry that the ledger has, or refuses the write.
func (u mailUpdate) finish(t *mailTurn) error {
	was, err := t.stored(u.project, u.pos)
	ended := statusCodes[u.status].Ended()
	switch {
	case err != nil:
		return err
	case was == 0 && !ended:
		t.refused = ErrNoMail
		return nil
	case was != 0 && was != u.status && statusCodes[was].Ended():
		t.refused = ErrMailEnded
		return nil
	case was == u.status:
		return nil
	}
	t.bound = u.id
	if ended {
		if err := t.noteEnded(u.project, u.id, u.status, time.Now()); err != nil {
			return err
		}
	}
	return t.count(u.project, was, u.status)
}

// ForgetMail deletes mails whose AcceptMail failed but may have been stored, with the idempotency keys that refer to
// them. It keeps a mail with a recorded attempt, except the first one of a mail accepted as SENDING, which cannot have
// happened. Unknown ids are ignored.
func (l *Ledger) ForgetMail(ids []int64) error {
	for _, id := range ids {
		err := l.writeMail(l.newBatch(), func(t *mailTurn) error { return t.forget(id) })
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
