package mailer_test

import (
	"slices"
	"sync"
	"time"

	"fingerpost/mailer"
	"fingerpost/resolver/catalog"
)

// A faultyLedger is a ledger whose process, or whose disk, can be made to fail.
type faultyLedger struct {
	mailer.Ledger

	mu       sync.Mutex
	dead     bool                   // nothing more reaches the store, as after kill -9
	refusing bool                   // writes are UNAVAILABLE, as with a full disk
	before   func(*catalog.MailLog) // called before each UpdateMail
	updates  []catalog.MailLog
	pruned   []time.Time
}

var errFull = &catalog.Error{Code: catalog.CodeUnavailable, Message: "the disk is full"}

func (f *faultyLedger) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *faultyLedger) refuses() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dead || f.refusing
}

func (f *faultyLedger) AcceptMail(log *catalog.MailLog, mail *catalog.QueuedMail, idem *catalog.Idempotency) (*catalog.Idempotency, error) {
	if f.refuses() {
		return nil, errFull
	}
	return f.Ledger.AcceptMail(log, mail, idem)
}

func (f *faultyLedger) UpdateMail(log *catalog.MailLog) error {
	f.mu.Lock()
	before := f.before
	f.mu.Unlock()
	if before != nil {
		before(log)
	}
	if f.refuses() {
		return errFull
	}
	f.set(func() { f.updates = append(f.updates, *log) })
	return f.Ledger.UpdateMail(log)
}

func (f *faultyLedger) BounceMail(log *catalog.MailLog, s catalog.Suppression) error {
	if f.refuses() {
		return errFull
	}
	f.set(func() { f.updates = append(f.updates, *log) })
	return f.Ledger.BounceMail(log, s)
}

// prunes are the moments of PruneMail.
func (f *faultyLedger) prunes() []time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.pruned)
}

func (f *faultyLedger) EachQueued(visit func(catalog.MailLog, catalog.QueuedMail) error) error {
	if f.refuses() {
		return errFull
	}
	return f.Ledger.EachQueued(visit)
}

func (f *faultyLedger) AnswerMail(idem *catalog.Idempotency) error {
	if f.refuses() {
		return errFull
	}
	return f.Ledger.AnswerMail(idem)
}

func (f *faultyLedger) PruneMail(before, now time.Time) error {
	if f.refuses() {
		return errFull
	}
	f.set(func() { f.pruned = append(f.pruned, before) })
	return f.Ledger.PruneMail(before, now)
}
