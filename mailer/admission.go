package mailer

import (
	"context"
	"time"

	"fingerpost/mailer/smtp"
	"fingerpost/resolver/catalog"
)

// An admission is a send's way to a place in an outbox.
type admission struct {
	box     *outbox
	config  fingerprint
	size    int           // of the message
	kept    bool          // the message stays in memory; else it is queued
	placed  bool          // it has a place
	refused *smtp.Outcome // the breaker is open; nil otherwise
}

// shortly is how long a send waits for a place before it is accepted as PENDING, which costs one more synced write.
const shortly = time.Second

// ask waits for a place until ctx ends, or for that long.
func (a *admission) ask(ctx context.Context, d time.Duration) {
	if a.box.proceed(a.config) && a.kept {
		if a.placed = a.box.takePlace(); !a.placed {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			defer a.box.m.clock.AfterFunc(d, cancel)()
			a.placed = a.box.waitForPlace(ctx)
		}
	}
	// Also where it has opened during the wait.
	if a.refused = a.box.outlook(a.config); a.refused != nil {
		a.leavePlace()
	}
}

// askOn goes on asking for a place for a mail that is stored, until ctx ends.
func (m *Mailer) askOn(ctx context.Context, a *admission, s *sending) {
	a.ask(ctx, m.options.Budget)
	if a.placed && m.noteAttempt(s) != nil {
		a.leavePlace()
	}
	if a.placed {
		return
	}
	before := s.log
	a.queued(&s.log)
	if err := m.options.Ledger.UpdateMail(&s.log); err != nil {
		s.log = before // which is what the ledger has, and says as much
	}
}

// queued notes in an entry that the mail waits with the others of its project, and why where that is known.
func (a *admission) queued(log *catalog.MailLog) {
	log.Status, log.NextAttemptAt = catalog.MailRetrying, log.CreatedAt
	if a.refused != nil {
		log.ErrorCode, log.ErrorMessage = a.refused.Code, explain(a.refused)
	}
}

// handOver leaves to an attempt what the admission has: it calls the result once it needs nothing of it any more.
func (a *admission) handOver() (leave func()) {
	rest := *a
	a.kept, a.placed = false, false
	return rest.leave
}

// leave gives everything back that it has.
func (a *admission) leave() {
	if a.kept {
		a.kept = false
		a.box.dropMessage(a.size)
	}
	a.leavePlace()
}

// leavePlace gives the place back, if there is one.
func (a *admission) leavePlace() {
	if a.placed {
		a.placed = false
		a.box.leavePlace()
	}
}
