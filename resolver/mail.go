package resolver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/store"
)

// A MailGap tells of mail that was lost, or may have been, with a store that was damaged.
type MailGap = store.MailGap

// mailKeeping is what a Resolver knows of mail beside the store.
type mailKeeping struct {
	// accepting is held for reading by AcceptMail, so that who takes it for writing knows all doubtful mails.
	accepting sync.RWMutex

	mu        sync.Mutex    // guards what follows
	last      int64         // the highest id that was given out
	stored    int64         // the highest id that was accepted
	doubtful  []int64       // mails whose AcceptMail failed; their batches may have got to the disk
	refused   []int64       // those of them that may be in one of asides
	gaps      []MailGap     // of the store in use
	asides    []string      // damaged stores whose mail is not yet salvaged
	recovered bool          // of those, what decides whether a mail is accepted and sent
	salvage   chan struct{} // closed when the last salvage has ended; nil before the first
}

// mailIDEpoch is the moment from which ids count microseconds.
var mailIDEpoch = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

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
	if clock := r.options.Now().Sub(mailIDEpoch).Microseconds(); clock > id && clock < maxMailID {
		id = clock
	}
	m.last = id
	if st := r.writes.Load(); !st.InMemory() && id > st.MailIDBound() {
		_ = st.ReserveMailIDs(id+mailIDsAhead, false) // a store that cannot be written takes no mail with this id
	}
	return id
}

// unavailable is what a caller gets to see when mail cannot be read or written.
func unavailable(what string) error {
	return &catalog.Error{Code: catalog.CodeUnavailable, Message: what}
}

// mailError turns a store's error into the caller's.
func mailError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrNoMail):
		return notFound("mail")
	case errors.Is(err, store.ErrMailEnded):
		return &catalog.Error{Code: catalog.CodeConflict, Message: "the mail has reached its end"}
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrDamaged), errors.Is(err, store.ErrClosed), errors.Is(err, store.ErrNewer):
		return unavailable("the mail store is not available at the moment")
	}
	return err
}

// mailStore returns the store that mail is written to. There is none while one in memory stands in for the disk's: a mail
// in it would be lost with the process. Nor is there one until it is known what a damaged store had in its queue.
func (r *Resolver) mailStore() (*store.Store, error) {
	st := r.writes.Load()
	if st.InMemory() && r.options.DataDir != "" {
		return nil, unavailable("mail cannot be stored until the store on disk is back")
	}
	r.mail.mu.Lock()
	defer r.mail.mu.Unlock()
	if len(r.mail.asides) > 0 && !r.mail.recovered {
		return nil, unavailable("mail is being recovered from a damaged store")
	}
	return st, nil
}

// withMail runs f on the store that mail is written to, again where that one was exchanged before f did anything.
func (r *Resolver) withMail(f func(st *store.Store) error) error {
	for {
		st, err := r.mailStore()
		if err != nil {
			return err
		}
		err = f(st)
		if errors.Is(err, store.ErrClosed) && st != r.writes.Load() {
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
	err = r.withMail(func(st *store.Store) (err error) {
		there, err = st.AcceptMail(log, mail, idem, r.options.Now())
		r.mail.mu.Lock()
		defer r.mail.mu.Unlock()
		switch {
		case err == nil && there == nil:
			r.mail.stored = max(r.mail.stored, log.ID)
		case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrDamaged):
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
	return r.withMail(func(st *store.Store) error { return st.UpdateMail(log) })
}

// AnswerMail notes the first answer to a send with an idempotency key. A key that has expired or belongs to another mail
// by now, and one that has its answer, stay as they are.
func (r *Resolver) AnswerMail(idem *catalog.Idempotency) error {
	return r.withMail(func(st *store.Store) error { return st.AnswerMail(idem) })
}

// Idempotency returns what is kept under a project's key; false where there is nothing, or it has expired.
func (r *Resolver) Idempotency(projectID int64, key string) (i catalog.Idempotency, found bool, err error) {
	err = r.withMail(func(st *store.Store) (err error) {
		i, found, err = st.Idempotency(projectID, key, r.options.Now())
		return err
	})
	return i, found, err
}

// QueuedMail returns a mail that has not reached its end.
func (r *Resolver) QueuedMail(logID int64) (m catalog.QueuedMail, found bool, err error) {
	err = r.withMail(func(st *store.Store) (err error) {
		m, found, err = st.QueuedMail(logID)
		return err
	})
	return m, found, err
}

// EachQueued calls f for all mails that have not reached their end, by id, as they are at one moment, with an empty
// Message. f must not call the Resolver; its error ends the walk and is returned.
func (r *Resolver) EachQueued(f func(log catalog.MailLog, mail catalog.QueuedMail) error) error {
	return r.withMail(func(st *store.Store) error { return st.EachQueued(f) })
}

// withMailLog runs f on the store whose mail log can be read. While a damaged store is replaced, that is as much of it as
// can still be read, and then what has been had back by then.
func (r *Resolver) withMailLog(f func(st *store.Store) error) error {
	for {
		st := r.reads.Load()
		if st.InMemory() && r.options.DataDir != "" {
			return unavailable("the mail log cannot be read until the store on disk is back")
		}
		err := f(st)
		if errors.Is(err, store.ErrClosed) && st != r.reads.Load() {
			continue
		}
		if err != nil {
			return readError(err)
		}
		return nil
	}
}

// MailLogs returns a page of a project's mail log and how many entries there are on all pages. VALIDATION_ERROR on "sort"
// where the rows have no such field. For what a page costs see store.Store.
func (r *Resolver) MailLogs(projectID int64, q catalog.MailQuery) (page []catalog.MailLog, total int, err error) {
	if err := checkSort(q.Sort, store.MailSorts()); err != nil {
		return nil, 0, err
	}
	err = r.withMailLog(func(st *store.Store) (err error) {
		page, total, err = st.MailLogs(projectID, q)
		return err
	})
	return page, total, err
}

// MailLog returns one entry of a project's mail log; false where there is none.
func (r *Resolver) MailLog(projectID, id int64) (log catalog.MailLog, found bool, err error) {
	err = r.withMailLog(func(st *store.Store) (err error) {
		log, found, err = st.MailLog(projectID, id)
		return err
	})
	return log, found, err
}

// PruneMail deletes the entries that ended and were created before a moment, of all projects, and the idempotency keys
// that have expired by now. Others write meanwhile.
func (r *Resolver) PruneMail(before, now time.Time) error {
	err := r.withMail(func(st *store.Store) error { return st.PruneMail(before, now) })
	if err == nil {
		err = r.withMail(r.readGaps)
	}
	return err
}

// ReclaimMail gives the room of the messages that mails had which have ended back to the disk, where Pebble would do so once much
// more has been written. It takes seconds for a large queue.
func (r *Resolver) ReclaimMail(ctx context.Context) error {
	return r.withMail(func(st *store.Store) error { return st.ReclaimMail(ctx) })
}

// MailGaps tells of what is missing in the mail log, or may be, because a store was damaged, until the retention has
// passed over it; and of what is being had back at the moment.
func (r *Resolver) MailGaps() []MailGap {
	m := &r.mail
	m.mu.Lock()
	defer m.mu.Unlock()
	gaps := append([]MailGap(nil), m.gaps...)
	for _, aside := range m.asides {
		gaps = append(gaps, store.PendingGap(aside))
	}
	return gaps
}

func (r *Resolver) readGaps(st *store.Store) error {
	gaps, err := st.MailGaps()
	if err == nil {
		r.mail.mu.Lock()
		r.mail.gaps = gaps
		r.mail.mu.Unlock()
	}
	return err
}

// takeUpMail gets ready for the mail in a store on disk, before anybody can ask for it: mails that were refused while the
// store before it failed are taken out, ids go on behind its own, and what it has to take over from damaged ones is found.
func (r *Resolver) takeUpMail(st *store.Store) error {
	m := &r.mail
	m.accepting.Lock() // nobody is on the way to the store that has failed any more
	m.mu.Lock()
	doubtful, stored := m.doubtful, m.stored
	m.mu.Unlock()
	m.accepting.Unlock()
	if err := st.ForgetMail(doubtful); err != nil {
		return err
	}
	asides, err := store.MovedAside(r.options.DataDir)
	if err != nil {
		return err
	}
	if n := st.MailMissing(); n > 0 {
		err = r.noteLoss(st, fmt.Sprintf("the log of the store was damaged: the last %d writes of mail are lost", n))
	} else if len(asides) == 0 && st.MailIDBound() < stored {
		err = r.noteLoss(st, "the data directory was removed or replaced while in use: what it had of mail is lost")
	}
	if err != nil {
		return err
	}
	if err := r.readGaps(st); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.doubtful = m.doubtful[len(doubtful):]
	if m.refused = append(m.refused, doubtful...); len(asides) == 0 {
		m.refused = nil
	}
	m.stored = 0 // what it has now is known
	m.last = max(m.last, st.MailIDBound())
	m.asides, m.recovered = asides, false
	return nil
}

// noteLoss keeps what nobody can have back in mind.
func (r *Resolver) noteLoss(st *store.Store, reason string) error {
	r.log.Error("mail lost", "reason", reason)
	return st.NoteGap(&MailGap{Found: r.options.Now(), Reason: reason})
}

// startSalvage has the mail of damaged stores copied in the background: what depends on the files must not wait for it.
func (r *Resolver) startSalvage(st *store.Store) {
	m := &r.mail
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.asides) == 0 {
		return
	}
	before, done := m.salvage, make(chan struct{})
	m.salvage = done
	asides := m.asides
	go func() {
		defer close(done)
		if before != nil {
			<-before // its store has failed
		}
		if err := r.salvage(st, asides); err != nil && r.watch.stopped.Err() == nil {
			r.log.Error("mail of a damaged store not recovered: it is tried again when the store is back, or with the next start", "error", err)
		}
	}()
}

func (r *Resolver) salvage(st *store.Store, asides []string) error {
	ctx := r.watch.stopped
	r.mail.mu.Lock()
	refused := r.mail.refused
	r.mail.mu.Unlock()
	var open []*store.Salvage
	defer func() {
		for _, v := range open {
			_ = v.Abandon() // with an error above all is done again
		}
	}()
	for _, aside := range asides {
		v, err := r.openSalvage(ctx, st, aside)
		if err != nil {
			return err
		}
		open = append(open, v)
		v.LeaveOut(refused)
		if err := v.Queue(ctx); err != nil {
			return err
		}
	}
	r.mail.mu.Lock()
	r.mail.recovered = true
	r.mail.last = max(r.mail.last, st.MailIDBound())
	r.mail.mu.Unlock()
	for len(open) > 0 {
		if err := open[0].Log(ctx); err != nil {
			return err
		}
		v := open[0]
		open = open[1:]
		gap, err := v.Close(r.options.Now())
		if err != nil {
			return err
		}
		r.log.Warn("mail recovered from a damaged store", "moved_to", gap.MovedTo, "entries", gap.Entries, "queued", gap.Queued,
			"lost", gap.Lost, "complete", gap.Complete, "reason", gap.Reason)
		if err := r.readGaps(st); err != nil {
			return err
		}
		r.mail.mu.Lock()
		r.mail.asides = r.mail.asides[1:]
		r.mail.mu.Unlock()
	}
	return nil
}

// openSalvage waits for the lock of a damaged store: an instance that has failed gives it back a moment later.
func (r *Resolver) openSalvage(ctx context.Context, st *store.Store, aside string) (*store.Salvage, error) {
	for {
		v, err := st.OpenSalvage(aside, r.log)
		if !errors.Is(err, store.ErrLocked) {
			return v, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// closeMail ends what is under way and leaves the bound of ids where they have got to.
func (r *Resolver) closeMail() {
	m := &r.mail
	m.mu.Lock()
	salvage, last := m.salvage, m.last
	m.mu.Unlock()
	if salvage != nil {
		<-salvage
	}
	if st := r.writes.Load(); !st.InMemory() && last > 0 && last < st.MailIDBound() {
		_ = st.ReserveMailIDs(last, true) // else the next ids begin a second later
	}
}
