package resolver

import (
	"context"
	"errors"
	"sync"
	"time"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/ledger"
)

// A MailGap describes mail that was lost, or may have been, with a damaged store.
type MailGap = ledger.MailGap

// mailKeeping is the Resolver's state for mail, apart from the ledger.
type mailKeeping struct {
	senders senders

	// accepting is read-locked by AcceptMail: a writer of it knows all doubtful mails.
	accepting sync.RWMutex

	mu        sync.Mutex    // guards the fields below
	last      int64         // highest id given out
	stored    int64         // highest id accepted
	doubtful  []int64       // mails whose AcceptMail failed; their batches may still be on disk
	refused   []int64       // the doubtful mails that may be in one of asides
	gaps      []MailGap     // of the store in use
	asides    []string      // damaged ledgers whose mail is not yet salvaged
	recovered bool          // the parts of those that decide whether a mail is accepted and sent
	salvage   chan struct{} // closed when the last salvage has ended; nil before the first
}

// recovering reports whether mail of damaged ledgers is not in the ledger yet. The caller holds mu.
func (m *mailKeeping) recovering() bool { return len(m.asides) > 0 }

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
func (r *Resolver) NewMailID() int64 {
	m := &r.mail
	m.mu.Lock()
	defer m.mu.Unlock()
	id := m.last + 1
	if clock := r.options.Now().Sub(ledger.MailIDEpoch).Microseconds(); clock > id && clock < maxMailID {
		id = clock
	}
	m.last = id
	if l := r.stores.Ledger(); l != nil && !l.InMemory() && id > l.MailIDBound() {
		// without the reservation, a ledger that fails to write accepts no mail with this id
		_ = l.ReserveMailIDs(id+mailIDsAhead, false)
	}
	return id
}

// unavailable is the client's error when mail cannot be read or written.
func unavailable(what string) error {
	return &catalog.Error{Code: catalog.CodeUnavailable, Message: what}
}

// mailError maps the ledger's error to the client's.
func mailError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ledger.ErrNoMail):
		return catalog.NotFound("mail")
	case errors.Is(err, ledger.ErrMailEnded):
		return &catalog.Error{Code: catalog.CodeConflict, Message: "the mail has reached its end"}
	case errors.Is(err, ledger.ErrUnavailable), errors.Is(err, ledger.ErrDamaged), errors.Is(err, ledger.ErrClosed),
		errors.Is(err, ledger.ErrNewer):
		return unavailable("the mail store is not available at the moment")
	}
	return err
}

// ledgerInUse returns the ledger. It refuses mail while a store in memory replaces the one on disk, because both are on
// the same disk, and until the queue of a damaged ledger is known.
func (r *Resolver) ledgerInUse() (*ledger.Ledger, error) {
	l := r.stores.Ledger()
	if l == nil || r.stores.StandIn(r.stores.Writes()) {
		return nil, unavailable("mail cannot be stored until the store on disk is back")
	}
	r.mail.mu.Lock()
	defer r.mail.mu.Unlock()
	if r.mail.recovering() && !r.mail.recovered {
		return nil, unavailable("mail is being recovered from a damaged store")
	}
	return l, nil
}

// withMail runs f on the ledger, and again if the ledger was replaced before f did anything.
func (r *Resolver) withMail(f func(l *ledger.Ledger) error) error {
	for {
		l, err := r.ledgerInUse()
		if err != nil {
			return err
		}
		err = f(l)
		if errors.Is(err, ledger.ErrClosed) && l != r.stores.Ledger() {
			continue
		}
		return mailError(err)
	}
}

// AcceptMail stores a new mail: its log entry, its message, and the idempotency key if idem is not nil, in one batch
// that is durable when it returns. If the key exists and has not expired, it stores nothing and returns the existing
// record. Times are kept to the microsecond. A mail refused as UNAVAILABLE is not sent once the disk works again; it
// may be sent if the process ends before that.
func (r *Resolver) AcceptMail(log *catalog.MailLog, mail *catalog.QueuedMail,
	idem *catalog.Idempotency) (there *catalog.Idempotency, err error) {
	r.mail.accepting.RLock()
	defer r.mail.accepting.RUnlock()
	err = r.withMail(func(l *ledger.Ledger) (err error) {
		there, err = l.AcceptMail(log, mail, idem, r.options.Now())
		r.mail.mu.Lock()
		defer r.mail.mu.Unlock()
		switch {
		case err == nil && there == nil:
			r.mail.stored = max(r.mail.stored, log.ID)
		case errors.Is(err, ledger.ErrUnavailable), errors.Is(err, ledger.ErrDamaged):
			r.mail.doubtful = append(r.mail.doubtful, log.ID)
		}
		return err
	})
	return there, err
}

// UpdateMail replaces the log entry with that project, createdAt and id. A final status also deletes the queued mail,
// in the same batch; the batch is durable when UpdateMail returns. An entry that was lost with a damaged store is
// stored if its status is final, and is NOT_FOUND otherwise. An entry with a final status takes no other: CONFLICT.
func (r *Resolver) UpdateMail(log *catalog.MailLog) error {
	return r.withMail(func(l *ledger.Ledger) error { return l.UpdateMail(log) })
}

// AnswerMail stores the first answer to a send with an idempotency key. It leaves a key alone that has expired, belongs
// to another mail by now, or has its answer.
func (r *Resolver) AnswerMail(idem *catalog.Idempotency) error {
	return r.withMail(func(l *ledger.Ledger) error { return l.AnswerMail(idem) })
}

// Idempotency returns the record under a project's key; false if there is none or it has expired.
func (r *Resolver) Idempotency(projectID int64, key string) (i catalog.Idempotency, found bool, err error) {
	err = r.withMail(func(l *ledger.Ledger) (err error) {
		i, found, err = l.Idempotency(projectID, key, r.options.Now())
		return err
	})
	return i, found, err
}

// ProjectsWithKey lists the projects that have an unexpired record under an idempotency key, see ledger.Ledger.
func (r *Resolver) ProjectsWithKey(key string) (projects []int64, err error) {
	err = r.withMail(func(l *ledger.Ledger) (err error) {
		projects, err = l.ProjectsWithKey(key, r.options.Now())
		return err
	})
	return projects, err
}

// QueuedMail returns a mail whose status is not final.
func (r *Resolver) QueuedMail(logID int64) (m catalog.QueuedMail, found bool, err error) {
	err = r.withMail(func(l *ledger.Ledger) (err error) {
		m, found, err = l.QueuedMail(logID)
		return err
	})
	return m, found, err
}

// EachQueued calls f for all mails whose status is not final, by id, as of one moment, with an empty Message. f must
// not call the Resolver; its error ends the walk and is returned.
func (r *Resolver) EachQueued(f func(log catalog.MailLog, mail catalog.QueuedMail) error) error {
	return r.withMail(func(l *ledger.Ledger) error { return l.EachQueued(f) })
}

// withMailLog runs f on the ledger, also while mail of a damaged one is being recovered into it.
func (r *Resolver) withMailLog(f func(l *ledger.Ledger) error) error {
	for {
		l := r.stores.Ledger()
		if l == nil || r.stores.StandIn(r.stores.Reads()) {
			return unavailable("neither mail log nor audit trail can be read until the store on disk is back")
		}
		err := f(l)
		if errors.Is(err, ledger.ErrClosed) && l != r.stores.Ledger() {
			continue
		}
		if err != nil {
			return readError(err)
		}
		return nil
	}
}

// MailLogs returns a page of a project's mail log and the number of all entries. VALIDATION_ERROR on "sort" for an
// unknown field. See ledger.Ledger for the cost of a page.
func (r *Resolver) MailLogs(projectID int64, q catalog.MailQuery) (page []catalog.MailLog, total int, err error) {
	if err := checkSort(q.Sort, ledger.MailSorts()); err != nil {
		return nil, 0, err
	}
	err = r.withMailLog(func(l *ledger.Ledger) (err error) {
		page, total, err = l.MailLogs(projectID, q)
		return err
	})
	return page, total, err
}

// MailAcross returns a page of the newest entries of several projects, of all if they are nil. See ledger.Ledger for its
// bounds and its cost.
func (r *Resolver) MailAcross(projects []int64, q catalog.MailQuery) (found catalog.MailFound, err error) {
	err = r.withMailLog(func(l *ledger.Ledger) (err error) {
		found, err = l.MailAcross(projects, q)
		return err
	})
	return found, err
}

// MailLog returns one entry of a project's mail log; false if there is none.
func (r *Resolver) MailLog(projectID, id int64) (log catalog.MailLog, found bool, err error) {
	err = r.withMailLog(func(l *ledger.Ledger) (err error) {
		log, found, err = l.MailLog(projectID, id)
		return err
	})
	return log, found, err
}

// PruneMail deletes the final entries created before a moment, of all projects, and the idempotency keys that have
// expired by now. Other writers are not blocked.
func (r *Resolver) PruneMail(before, now time.Time) error {
	err := r.withMail(func(l *ledger.Ledger) error { return l.PruneMail(before, now) })
	if err == nil {
		err = r.withMail(r.readGaps)
	}
	return err
}

// ReclaimMail frees the disk space of messages whose mails are final. Pebble alone would do so only after many more
// writes. It takes seconds for a large queue.
func (r *Resolver) ReclaimMail(ctx context.Context) error {
	return r.withMail(func(l *ledger.Ledger) error { return l.ReclaimMail(ctx) })
}

// MailGaps returns what is missing, or may be missing, in the mail log because a store was damaged (until the retention
// period has passed), and what is being recovered now.
func (r *Resolver) MailGaps() []MailGap {
	m := &r.mail
	m.mu.Lock()
	defer m.mu.Unlock()
	gaps := append([]MailGap(nil), m.gaps...)
	for _, aside := range m.asides {
		gaps = append(gaps, ledger.PendingGap(aside))
	}
	return gaps
}

func (r *Resolver) readGaps(l *ledger.Ledger) error {
	gaps, err := l.MailGaps()
	if err == nil {
		r.mail.mu.Lock()
		r.mail.gaps = gaps
		r.mail.mu.Unlock()
	}
	return err
}
