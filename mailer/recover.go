package mailer

import (
	"fmt"
	"time"

	"fingerpost/resolver/catalog"
)

// takeUp queues the mails of an earlier process. A mail whose attempt was under way may have been delivered, so it
// becomes uncertain.
func (m *Mailer) takeUp() error {
	type interruption struct {
		log     catalog.MailLog
		expires time.Time
	}
	now := m.clock.Now()
	var interrupted []interruption
	waiting := map[int64][]item{}
	err := m.options.Ledger.EachQueued(func(log catalog.MailLog, mail catalog.QueuedMail) error {
		if log.CreatedAt.After(now) { // by a clock that was ahead: the mail keeps its lifetime from now on
			mail.ExpiresAt = now.Add(mail.ExpiresAt.Sub(log.CreatedAt))
		}
		switch {
		case log.ID >= m.firstID || log.Status.Ended():
			return nil
		case underWay(&log):
			interrupted = append(interrupted, interruption{log, mail.ExpiresAt})
		default:
			waiting[log.ProjectID] = append(waiting[log.ProjectID], newItem(log.ID, log.NextAttemptAt, mail.ExpiresAt, now))
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the queue: %w", err)
	}
	for i := range interrupted {
		log := &interrupted[i].log
		log.Status, log.Uncertain, log.NextAttemptAt = catalog.MailRetrying, true, now
		if err := m.options.Ledger.UpdateMail(log); err != nil {
			return fmt.Errorf("note an interrupted attempt: %w", err) // the next round finds the others
		}
		m.counters.uncertain.Add(1)
		waiting[log.ProjectID] = append(waiting[log.ProjectID], newItem(log.ID, now, interrupted[i].expires, now))
	}
	m.mu.Lock()
	m.recovered = true
	m.mu.Unlock()
	for project, list := range waiting {
		m.waiting.add(project, len(list), 0)
		b := m.outbox(project)
		b.mu.Lock()
		for _, it := range list {
			b.later.push(it)
		}
		b.mu.Unlock()
		b.run()
		m.leaveOutbox(b)
	}
	return nil
}

// underWay reports whether an attempt was running when the entry was written. RETRYING without a time for the next
// attempt is what SENDING becomes when the send's budget ends first: the caller was answered that the mail is queued.
func underWay(log *catalog.MailLog) bool {
	return log.Status == catalog.MailSending || log.Status == catalog.MailRetrying && log.NextAttemptAt.IsZero()
}

func newItem(id int64, next, expires, now time.Time) item {
	it := item{id: id, expires: ceilMilli(expires)}
	if !next.IsZero() {
		it.at = nearby(ceilMilli(next), now)
	}
	it.at = min(it.at, it.expires)
	return it
}
