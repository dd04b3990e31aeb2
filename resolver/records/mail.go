package records

import (
	"context"
	"errors"
	"time"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/ledger"
)

// A MailGap describes mail that was lost, or may have been, with a damaged store.
type MailGap = ledger.MailGap

// MailTime returns when a mail with that id was accepted, by the id. It is the time of an earlier mail where ids were
// given out faster than one a microsecond, or the clock was set back.
func MailTime(id int64) time.Time {
	return ledger.MailIDEpoch.Add(time.Duration(id) * time.Microsecond)
}

// maxMailID keeps ids far below 2^53, whatever the clock says.
const maxMailID = 1 << 52

// mailIDsAhead is the number of ids that a write reserves: one second's worth.
const mailIDsAhead = 1_000_000

// NewMailID returns an id that increases with time and is larger than every id given out or stored before: the
// microseconds since 2020, or the next higher free number. It is below 2^53. Up to a second of ids is reserved on disk
// at a time, so an id that was given out and not stored does not recur after a crash.
func (r *Records) NewMailID() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := r.last + 1
	if clock := r.o.Now().Sub(ledger.MailIDEpoch).Microseconds(); clock > id && clock < maxMailID {
		id = clock
	}
	r.last = id
	if l := r.stores.Ledger(); l != nil && !l.InMemory() && id > l.MailIDBound() {
		// without the reservation, a ledger that fails to write accepts no mail with this id
		_ = l.ReserveMailIDs(id+mailIDsAhead, false)
	}
	return id
}

// AcceptMail stores a new mail: its log entry, its message, and the idempotency key if idem is not nil, in one batch
// that is durable when it returns. If the key exists and has not expired, it stores nothing and returns the existing
// record. Times are kept to the microsecond. A mail refused as UNAVAILABLE is not sent once the disk works again; it
// may be sent if the process ends before that.
func (r *Records) AcceptMail(log *catalog.MailLog, mail *catalog.QueuedMail,
	idem *catalog.Idempotency) (there *catalog.Idempotency, err error) {
	r.accepting.RLock()
	defer r.accepting.RUnlock()
	err = r.withLedger(func(l *ledger.Ledger) (err error) {
		there, err = l.AcceptMail(log, mail, idem, r.o.Now())
		r.mu.Lock()
		defer r.mu.Unlock()
		switch {
		case err == nil && there == nil:
			r.stored = max(r.stored, log.ID)
		case errors.Is(err, ledger.ErrUnavailable), errors.Is(err, ledger.ErrDamaged):
			r.doubtful = append(r.doubtful, log.ID)
		}
		return err
	})
	return there, err
}

// UpdateMail replaces the log entry with that project, createdAt and id. A final status also deletes the queued mail,
// in the same batch; the batch is durable when UpdateMail returns. An entry that was lost with a damaged store is
// stored if its status is final, and is NOT_FOUND otherwise. An entry with a final status takes no other: CONFLICT.
func (r *Records) UpdateMail(log *catalog.MailLog) error {
	return r.withLedger(func(l *ledger.Ledger) error { return l.UpdateMail(log) })
}

// AnswerMail stores the first answer to a send with an idempotency key. It leaves a key alone that has expired, belongs
// to another mail by now, or has its answer.
func (r *Records) AnswerMail(idem *catalog.Idempotency) error {
	return r.withLedger(func(l *ledger.Ledger) error { return l.AnswerMail(idem) })
}

// Idempotency returns the record under a project's key; false if there is none or it has expired.
func (r *Records) Idempotency(projectID int64, key string) (i catalog.Idempotency, found bool, err error) {
	err = r.withLedger(func(l *ledger.Ledger) (err error) {
		i, found, err = l.Idempotency(projectID, key, r.o.Now())
		return err
	})
	return i, found, err
}

// ProjectsWithKey lists the projects that have an unexpired record under an idempotency key, see ledger.Ledger.
func (r *Records) ProjectsWithKey(key string) (projects []int64, err error) {
	err = r.withLedger(func(l *ledger.Ledger) (err error) {
		projects, err = l.ProjectsWithKey(key, r.o.Now())
		return err
	})
	return projects, err
}

// QueuedMail returns a mail whose status is not final.
func (r *Records) QueuedMail(logID int64) (m catalog.QueuedMail, found bool, err error) {
	err = r.withLedger(func(l *ledger.Ledger) (err error) {
		m, found, err = l.QueuedMail(logID)
		return err
	})
	return m, found, err
}

// EachQueued calls f for all mails whose status is not final, by id, as of one moment, with an empty Message. f must
// not call the Resolver; its error ends the walk and is returned.
func (r *Records) EachQueued(f func(log catalog.MailLog, mail catalog.QueuedMail) error) error {
	return r.withLedger(func(l *ledger.Ledger) error { return l.EachQueued(f) })
}

// MailLogs returns a page of a project's mail log and the number of all entries. VALIDATION_ERROR on "sort" for an
// unknown field. See ledger.Ledger for the cost of a page.
func (r *Records) MailLogs(projectID int64, q catalog.MailQuery) (page []catalog.MailLog, total int, err error) {
	if err := catalog.CheckSort(q.Sort, ledger.MailSorts()); err != nil {
		return nil, 0, err
	}
	err = r.withLog(func(l *ledger.Ledger) (err error) {
		page, total, err = l.MailLogs(projectID, q)
		return err
	})
	return page, total, err
}

// MailAcross returns a page of the newest entries of several projects, of all if they are nil. See ledger.Ledger for its
// bounds and its cost.
func (r *Records) MailAcross(projects []int64, q catalog.MailQuery) (found catalog.MailFound, err error) {
	err = r.withLog(func(l *ledger.Ledger) (err error) {
		found, err = l.MailAcross(projects, q)
		return err
	})
	return found, err
}

// MailLog returns one entry of a project's mail log; false if there is none.
func (r *Records) MailLog(projectID, id int64) (log catalog.MailLog, found bool, err error) {
	err = r.withLog(func(l *ledger.Ledger) (err error) {
		log, found, err = l.MailLog(projectID, id)
		return err
	})
	return log, found, err
}

// PruneMail deletes the final entries created before a moment, of all projects, and the idempotency keys that have
// expired by now. Other writers are not blocked.
func (r *Records) PruneMail(before, now time.Time) error {
	err := r.withLedger(func(l *ledger.Ledger) error { return l.PruneMail(before, now) })
	if err == nil {
		err = r.withLedger(r.readGaps)
	}
	return err
}

// ReclaimMail frees the disk space of messages whose mails are final. Pebble alone would do so only after many more
// writes. It takes seconds for a large queue.
func (r *Records) ReclaimMail(ctx context.Context) error {
	return r.withLedger(func(l *ledger.Ledger) error { return l.ReclaimMail(ctx) })
}

// MailGaps returns what is missing, or may be missing, in the mail log because a store was damaged (until the retention
// period has passed), and what is being recovered now.
func (r *Records) MailGaps() []MailGap {
	r.mu.Lock()
	defer r.mu.Unlock()
	gaps := append([]MailGap(nil), r.gaps...)
	for _, aside := range r.asides {
		gaps = append(gaps, ledger.PendingGap(aside))
	}
	return gaps
}

func (r *Records) readGaps(l *ledger.Ledger) error {
	gaps, err := l.MailGaps()
	if err == nil {
		r.mu.Lock()
		r.gaps = gaps
		r.mu.Unlock()
	}
	return err
}
