package mailer

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"fingerpost/mailer/message"
	"fingerpost/mailer/smtp"
	"fingerpost/resolver/catalog"
)

// A sending is a mail while an attempt is under way, or what came of it is not stored yet.
type sending struct {
	box     *outbox
	expires time.Time

	mu        sync.Mutex      // guards what follows
	log       catalog.MailLog // what the ledger has, or is to have
	answered  bool            // nobody waits for what comes of it: the send has been told that it is queued, or is long over
	concluded bool
	failed    *catalog.Error // what the send is told, where the mail has failed
	done      chan struct{}  // closed when concluded and stored, or found not to be storable; may be nil
}

// try makes an attempt, whose entry is stored as being under way, and stores what came of it. The place in the outbox is
// given back as soon as the server is done with.
func (m *Mailer) try(s *sending, d destination, mail *catalog.QueuedMail, leave func()) {
	o := m.options.Carrier.Send(m.attempts, d.server, smtp.Envelope{From: mail.From, To: mail.To}, mail.Message)
	cut := m.attempts.Err() != nil && o.Class == smtp.Temporary
	if configLevel(&o) {
		o.Class = smtp.BadConfig
	}
	// A mail that was accepted under another sender says nothing of the sender that the config has now.
	from, _ := message.Draft{FromEmail: d.from}.Envelope()
	own := !aboutMail(o.Stage) || mail.From == from
	if o.Class == smtp.BadConfig && !own && o.Code == smtp.CodeSenderRejected {
		o.Class = smtp.Permanent // another sender in the config does this mail no good, which has its own
	}
	if !cut {
		s.box.note(d.fingerprint, &o)
	}
	leave()
	// Drain may have given up waiting, and then the ledger is not ours any more: what it has says that this attempt was
	// under way, which is right.
	m.ledgerUse.RLock()
	defer m.ledgerUse.RUnlock()
	if m.abandoned {
		return
	}
	// Before the send is answered: the next one shall find the breaker open.
	opened := o.Class == smtp.BadConfig && own && m.refused(s.box, d.fingerprint, &o)
	m.conclude(s, &o, cut)
	if opened {
		m.lookAgain(s.box)
	}
}

// conclude stores what came of an attempt. cut says that it was cut off by Drain, before the server had the mail: it does
// not count.
func (m *Mailer) conclude(s *sending, o *smtp.Outcome, cut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := m.clock.Now()
	log := &s.log
	if !cut {
		log.ErrorCode, log.ErrorMessage, log.SMTPCode = o.Code, explain(o), o.SMTPCode
	}
	log.NextAttemptAt = time.Time{}
	switch {
	case cut:
		log.Status, log.NextAttemptAt = catalog.MailRetrying, earlier(now, s.expires)
		log.Attempts--
	case o.Class == smtp.Accepted:
		log.Status, log.SentAt = catalog.MailSent, now
		log.ErrorCode, log.ErrorMessage = "", ""
		m.counters.sent.Add(1)
	case o.Class == smtp.Permanent || o.Class == smtp.BadConfig && !s.answered:
		log.Status = catalog.MailFailed
		s.failed = &catalog.Error{Code: o.Code, Message: log.ErrorMessage, Problems: o.Problems}
		m.counters.failed.Add(1)
	default:
		// Also BadConfig, where the sender was told that the mail is queued: it waits for the config to change.
		log.Status = catalog.MailRetrying
		if o.Class == smtp.Uncertain {
			log.Uncertain = true
			m.counters.uncertain.Add(1)
		} else {
			m.counters.retrying.Add(1)
		}
		log.NextAttemptAt = earlier(now.Add(waitAfter(log.Attempts, o.RetryIn)).Truncate(time.Millisecond), s.expires)
	}
	s.concluded = true
	m.save(s)
	if s.done != nil {
		close(s.done)
	}
}

// explain is an outcome's text for people: what happened, and what the server said.
func explain(o *smtp.Outcome) string {
	if o.Reply == "" {
		return o.Message
	}
	return strings.TrimSuffix(o.Message, ".") + ". The server said: " + o.Reply
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// save writes a concluded sending's entry, and lets the mail wait where it has not reached its end. Where the ledger
// cannot write, tick tries again: a mail that was sent must not be sent again because of that. The caller holds s.mu.
func (m *Mailer) save(s *sending) {
	err := m.options.Ledger.UpdateMail(&s.log)
	if gone(err) {
		m.waiting.add(s.box.project, -1)
		return
	}
	if err != nil {
		if !unavailable(err) {
			m.log.Error("what came of an attempt cannot be stored", "project", s.log.ProjectID, "logId", s.log.ID, "error", err)
		}
		m.mu.Lock()
		s.box.users++
		m.unsaved = append(m.unsaved, s)
		m.mu.Unlock()
		return
	}
	if s.log.Status.Ended() {
		m.waiting.add(s.box.project, -1)
		return
	}
	s.box.add(newItem(s.log.ID, s.log.NextAttemptAt, s.expires))
}

// saveAll tries again what save could not.
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

// ledgerPause is how long a mail waits whose attempt could not be stored.
const ledgerPause = 5 * time.Second

// retry makes the next attempt for a mail that waited, or ends it.
func (m *Mailer) retry(b *outbox, it item, p *slot, leave func()) {
	mail, log, there, err := m.stored(b.project, it.id)
	p.weigh(len(mail.Message))
	switch {
	case err != nil:
		m.later(b, it)
		return
	case !there: // lost with the store, or ended by somebody else
		m.waiting.add(b.project, -1)
		return
	}
	s := &sending{box: b, expires: time.UnixMilli(it.expires), log: log, answered: true}
	if it.expires <= m.clock.Now().UnixMilli() {
		m.expire(s, it)
		return
	}
	d, wait, err := m.destination(b.project)
	switch {
	case err != nil:
		m.later(b, it)
	case wait != nil && b.wait(*wait):
		m.fail(s, it, wait)
	case wait != nil || !b.proceed(d.fingerprint):
		b.add(it)
	case m.noteAttempt(s) != nil:
		m.later(b, it)
	default:
		m.try(s, d, &mail, leave)
	}
}

// errHalf is what the ledger has of a mail while it is being had back from a damaged store.
var errHalf = errors.New("a queued mail without its log entry")

// stored reads a mail that has not reached its end. The queue is asked first: it is what says that there is none, while a
// log entry may be missing for a time.
func (m *Mailer) stored(project, id int64) (mail catalog.QueuedMail, log catalog.MailLog, there bool, err error) {
	if mail, there, err = m.options.Ledger.QueuedMail(id); err != nil || !there {
		return mail, log, false, err
	}
	if log, there, err = m.options.Ledger.MailLog(project, id); err == nil && !there {
		err = errHalf
	}
	return mail, log, there && !log.Status.Ended(), err
}

// noteAttempt stores that an attempt is under way: from here on nobody knows what came of it but who makes it.
func (m *Mailer) noteAttempt(s *sending) error {
	before := s.log
	s.log.Status, s.log.NextAttemptAt = catalog.MailSending, time.Time{}
	s.log.Attempts++
	err := m.options.Ledger.UpdateMail(&s.log)
	if err != nil {
		s.log = before
	}
	return err
}

// later lets a mail wait for the ledger, whose entry stays as it is.
func (m *Mailer) later(b *outbox, it item) {
	it.at = ceilMilli(m.clock.Now().Add(ledgerPause))
	b.add(it)
}

// expire ends a mail that was not taken in time.
func (m *Mailer) expire(s *sending, it item) {
	s.log.Status, s.log.NextAttemptAt = catalog.MailExpired, time.Time{}
	if s.log.ErrorCode == "" {
		if h := s.box.reason(); h != nil {
			s.log.ErrorCode, s.log.ErrorMessage = h.code, "Not tried in time: "+h.message+"."
		}
	}
	m.endWith(s, it, &m.counters.expired)
}

// fail ends a mail that nothing can be done about.
func (m *Mailer) fail(s *sending, it item, why *hold) {
	s.log.Status, s.log.NextAttemptAt = catalog.MailFailed, time.Time{}
	s.log.ErrorCode, s.log.ErrorMessage = why.code, why.message
	if s.log.Attempts > 0 {
		s.log.ErrorMessage = fmt.Sprintf("%s after %d attempts", why.message, s.log.Attempts)
	}
	m.endWith(s, it, &m.counters.failed)
}

func (m *Mailer) endWith(s *sending, it item, counter *atomic.Uint64) {
	if err := m.options.Ledger.UpdateMail(&s.log); err != nil && !gone(err) {
		m.later(s.box, it)
		return
	}
	counter.Add(1)
	m.waiting.add(s.box.project, -1)
}
