package mailer

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"fingerpost/resolver/catalog"
)

// retry makes the next attempt with a queued mail, or ends the mail. it is its item in the outbox.
func (m *Mailer) retry(b *outbox, it item, p *slot, leave func()) {
	mail, log, there, err := m.stored(b.project, it.id)
	p.weigh(len(mail.Message))
	switch {
	case err != nil:
		m.later(b, it)
		return
	case !there: // lost with the store, or ended elsewhere
		m.waiting.add(b.project, -1, 0)
		return
	}
	s := &sending{box: b, expires: time.UnixMilli(it.expires), log: log, cause: it.cause}
	if it.expires <= m.clock.Now().UnixMilli() {
		m.expire(s, it)
		return
	}
	by, err := m.stoppedBy(&mail)
	switch {
	case err != nil:
		m.later(b, it)
		return
	case by != nil:
		m.endSuppressed(s, it, by)
		return
	}
	d, wait, err := m.destination(b.project)
	switch {
	case err != nil:
		m.later(b, it)
	case wait != nil && b.wait(*wait):
		m.fail(s, it, wait)
	case wait != nil || !b.proceed(d):
		b.add(it)
	case m.noteAttempt(s) != nil:
		m.later(b, it)
	default:
		s.span = it.cause.Later("mail.attempt")
		m.try(s, d, &mail, leave)
	}
}

// stored reads a mail that has not reached its end. It reads the queue first: a mail that is not queued does not exist,
// while a log entry may be missing for a time.
func (m *Mailer) stored(project, id int64) (mail catalog.QueuedMail, log catalog.MailLog, there bool, err error) {
	if mail, there, err = m.options.Ledger.QueuedMail(id); err != nil || !there {
		return mail, log, false, err
	}
	if log, there, err = m.options.Ledger.MailLog(project, id); err == nil && !there {
		err = errors.New("a queued mail without its log entry") // it is being salvaged from a damaged store
	}
	return mail, log, there && !log.Status.Ended(), err
}

// noteAttempt stores that an attempt is running. From then on every other process treats its outcome as unknown.
func (m *Mailer) noteAttempt(s *sending) error {
	return m.update(s, func(log *catalog.MailLog) {
		log.Status, log.NextAttemptAt = catalog.MailSending, time.Time{}
		log.Attempts++
	})
}

// update changes the entry of a mail. If the ledger cannot store it, the entry stays as the ledger has it.
func (m *Mailer) update(s *sending, change func(log *catalog.MailLog)) error {
	before := s.log
	change(&s.log)
	err := m.options.Ledger.UpdateMail(&s.log)
	if err != nil {
		s.log = before
	}
	return err
}

// ledgerPause is how long a mail waits after the ledger has failed to store its attempt.
const ledgerPause = 5 * time.Second

// later queues a mail again after ledgerPause. Its entry stays as it is.
func (m *Mailer) later(b *outbox, it item) {
	it.at = ceilMilli(m.clock.Now().Add(ledgerPause))
	b.add(it)
}

// saveAll stores the outcomes that save could not store.
func (m *Mailer) saveAll() {
	m.mu.Lock()
	unsaved := m.unsaved
	m.unsaved = nil
	m.mu.Unlock()
	for _, s := range unsaved {
		s.mu.Lock()
		m.save(s)
		s.mu.Unlock()
		m.leaveOutbox(s.box)
	}
}

// expire ends a mail that no server accepted in time.
func (m *Mailer) expire(s *sending, it item) {
	if h := s.box.reason(); h != nil && s.log.ErrorCode == "" {
		s.log.ErrorCode, s.log.ErrorMessage = h.code, "Not tried in time: "+h.message+"."
	}
	m.endAs(catalog.MailExpired, s, it, &m.counters.expired)
}

// fail ends a mail that cannot be sent any more.
func (m *Mailer) fail(s *sending, it item, why *hold) {
	s.log.ErrorCode, s.log.ErrorMessage = why.code, why.message
	if s.log.Attempts > 0 {
		s.log.ErrorMessage = fmt.Sprintf("%s after %d attempts", why.message, s.log.Attempts)
	}
	m.endAs(catalog.MailFailed, s, it, &m.counters.failed)
}

func (m *Mailer) endAs(status catalog.MailStatus, s *sending, it item, counter *atomic.Uint64) {
	s.log.Status, s.log.NextAttemptAt = status, time.Time{}
	if err := m.options.Ledger.UpdateMail(&s.log); err != nil && !gone(err) {
		m.later(s.box, it)
		return
	}
	counter.Add(1)
	m.waiting.add(s.box.project, -1, 0)
}
