package resolver

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/ledger"
	"fingerpost/resolver/store"
)

// A MailGap tells of mail that was lost, or may have been, with a store that was damaged.
type MailGap = ledger.MailGap

// mailKeeping is what a Resolver knows of mail besides the ledger.
type mailKeeping struct {
	ledger atomic.Pointer[ledger.Ledger] // nil while it cannot be used

	// accepting is held for reading by AcceptMail, so that who takes it for writing knows all doubtful mails.
	accepting sync.RWMutex

	mu        sync.Mutex    // guards what follows
	last      int64         // the highest id that was given out
	stored    int64         // the highest id that was accepted
	doubtful  []int64       // mails whose AcceptMail failed; their batches may have got to the disk
	refused   []int64       // those of them that may be in one of asides
	gaps      []MailGap     // of the store in use
	asides    []string      // damaged ledgers and stores whose mail is not yet salvaged
	former    ledger.Former // the store, if an earlier release has left mail in it; else nil
	recovered bool          // of those, what decides whether a mail is accepted and sent
	salvage   chan struct{} // closed when the last salvage has ended; nil before the first
}

// recovering reports that mail of other databases is not in the ledger yet. The caller holds mu.
func (m *mailKeeping) recovering() bool { return len(m.asides) > 0 || m.former != nil }

// maxMailID keeps ids below 2^53 by far, whatever the clock says.
const maxMailID = 1 << 52

// mailIDsAhead is how many ids a write reserves: one second of them.
const mailIDsAhead = 1_000_000

// NewMailID returns an id that rises with time and is larger than every id that was ever given out or stored: the
// microseconds since 2020, moved up where that is taken. It is below 2^53. Up to a second of ids is reserved on the disk
// at a time, so that one that was given out and not stored does not come again after a crash, either.
func (r *Resolver) NewMailID() int64 {
	m := &r.mail
	m.mu.Lock()
	defer m.mu.Unlock()
	id := m.last + 1
	if clock := r.options.Now().Sub(ledger.MailIDEpoch).Microseconds(); clock > id && clock < maxMailID {
		id = clock
	}
	m.last = id
	if l := m.ledger.Load(); l != nil && !l.InMemory() && id > l.MailIDBound() {
		_ = l.ReserveMailIDs(id+mailIDsAhead, false) // a ledger that cannot be written takes no mail with this id
	}
	return id
}

// unavailable is what a caller gets to see when mail cannot be read or written.
func unavailable(what string) error {
	return &catalog.Error{Code: catalog.CodeUnavailable, Message: what}
}

// mailError turns the ledger's error into the caller's.
func mailError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ledger.ErrNoMail):
		return notFound("mail")
	case errors.Is(err, ledger.ErrMailEnded):
		return &catalog.Error{Code: catalog.CodeConflict, Message: "the mail has reached its end"}
	case errors.Is(err, ledger.ErrUnavailable), errors.Is(err, ledger.ErrDamaged), errors.Is(err, ledger.ErrClosed), errors.Is(err, ledger.ErrNewer):
		return unavailable("the mail store is not available at the moment")
	}
	return err
}

// ledgerInUse returns the ledger. Mail is refused while a store in memory stands in for the one on disk, because both are on
// the same disk, and until it is known what a damaged ledger had in its queue.
func (r *Resolver) ledgerInUse() (*ledger.Ledger, error) {
	l := r.mail.ledger.Load()
	if l == nil || r.standIn(r.writes.Load()) {
		return nil, unavailable("mail cannot be stored until the store on disk is back")
	}
	r.mail.mu.Lock()
	defer r.mail.mu.Unlock()
	if r.mail.recovering() && !r.mail.recovered {
		return nil, unavailable("mail is being recovered from a damaged store")
	}
	return l, nil
}

// standIn reports whether st is in memory because the disk has failed.
func (r *Resolver) standIn(st *store.Store) bool { return st.InMemory() && r.options.DataDir != "" }

// withMail runs f on the ledger, again where it was exchanged before f did anything.
func (r *Resolver) withMail(f func(l *ledger.Ledger) error) error {
	for {
		l, err := r.ledgerInUse()
		if err != nil {
			return err
		}
		err = f(l)
		if errors.Is(err, ledger.ErrClosed) && l != r.mail.ledger.Load() {
			continue
		}
		return mailError(err)
	}
}

// AcceptMail stores a new mail: its log entry, its message, and the idempotency key where idem is not nil, in one batch
// that is on the disk when it returns. Where that key is there and has not expired, nothing is stored and what is there is
// returned. Times are kept to the microsecond. A mail that was refused as UNAVAILABLE is not sent once the disk is back;
// where the process ends before that, it may be.
func (r *Resolver) AcceptMail(log *catalog.MailLog, mail *catalog.QueuedMail, idem *catalog.Idempotency) (there *catalog.Idempotency, err error) {
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

// UpdateMail replaces a log entry, which project, createdAt and id name. Where its status is an end, the queued mail goes
// in the same batch; it is on the disk when it returns. An entry that is not there, because it was lost with a damaged
// store, is stored where it has ended and NOT_FOUND otherwise. One that has ended takes no other status: CONFLICT.
func (r *Resolver) UpdateMail(log *catalog.MailLog) error {
	return r.withMail(func(l *ledger.Ledger) error { return l.UpdateMail(log) })
}

// AnswerMail notes the first answer to a send with an idempotency key. A key that has expired or belongs to another mail
// by now, and one that has its answer, stay as they are.
func (r *Resolver) AnswerMail(idem *catalog.Idempotency) error {
	return r.withMail(func(l *ledger.Ledger) error { return l.AnswerMail(idem) })
}

// Idempotency returns what is kept under a project's key; false where there is nothing, or it has expired.
func (r *Resolver) Idempotency(projectID int64, key string) (i catalog.Idempotency, found bool, err error) {
	err = r.withMail(func(l *ledger.Ledger) (err error) {
		i, found, err = l.Idempotency(projectID, key, r.options.Now())
		return err
	})
	return i, found, err
}

// QueuedMail returns a mail that has not reached its end.
func (r *Resolver) QueuedMail(logID int64) (m catalog.QueuedMail, found bool, err error) {
	err = r.withMail(func(l *ledger.Ledger) (err error) {
		m, found, err = l.QueuedMail(logID)
		return err
	})
	return m, found, err
}

// EachQueued calls f for all mails that have not reached their end, by id, as they are at one moment, with an empty
// Message. f must not call the Resolver; its error ends the walk and is returned.
func (r *Resolver) EachQueued(f func(log catalog.MailLog, mail catalog.QueuedMail) error) error {
	return r.withMail(func(l *ledger.Ledger) error { return l.EachQueued(f) })
}

// withMailLog runs f on the ledger, also while the mail of a damaged one is being recovered into it.
func (r *Resolver) withMailLog(f func(l *ledger.Ledger) error) error {
	for {
		l := r.mail.ledger.Load()
		if l == nil || r.standIn(r.reads.Load()) {
			return unavailable("the mail log cannot be read until the store on disk is back")
		}
		err := f(l)
		if errors.Is(err, ledger.ErrClosed) && l != r.mail.ledger.Load() {
			continue
		}
		if err != nil {
			return readError(err)
		}
		return nil
	}
}

// MailLogs returns a page of a project's mail log and how many entries there are on all pages. VALIDATION_ERROR on "sort"
// where the rows have no such field. For what a page costs see ledger.Ledger.
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

// MailLog returns one entry of a project's mail log; false where there is none.
func (r *Resolver) MailLog(projectID, id int64) (log catalog.MailLog, found bool, err error) {
	err = r.withMailLog(func(l *ledger.Ledger) (err error) {
		log, found, err = l.MailLog(projectID, id)
		return err
	})
	return log, found, err
}

// PruneMail deletes the entries that ended and were created before a moment, of all projects, and the idempotency keys
// that have expired by now. Others write meanwhile.
func (r *Resolver) PruneMail(before, now time.Time) error {
	err := r.withMail(func(l *ledger.Ledger) error { return l.PruneMail(before, now) })
	if err == nil {
		err = r.withMail(r.readGaps)
	}
	return err
}

// ReclaimMail gives the room of the messages that mails had which have ended back to the disk, where Pebble would do so once much
// more has been written. It takes seconds for a large queue.
func (r *Resolver) ReclaimMail(ctx context.Context) error {
	return r.withMail(func(l *ledger.Ledger) error { return l.ReclaimMail(ctx) })
}

// MailGaps tells of what is missing in the mail log, or may be, because a store was damaged, until the retention has
// passed over it; and of what is being recovered at the moment.
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
