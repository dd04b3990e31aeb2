package mailer

import (
	"context"
	"time"

	"fingerpost/mailer/smtp"
	"fingerpost/resolver/catalog"
)

// An admission is what a send holds until its attempt: memory for its message, and a place in the outbox.
type admission struct {
	box      *outbox
	config   destination
	size     int           // of the message, in bytes
	inMemory bool          // the message stays in memory; else it is queued
	placed   bool          // it has a place
	refused  *smtp.Outcome // the breaker is open; nil otherwise
}

// shortly is how long a send waits for a place before the mail is stored as PENDING, which costs another synced write.
const shortly = time.Second

// ask waits for a place until ctx ends, or for d.
func (a *admission) ask(ctx context.Context, d time.Duration) {
	if a.box.proceed(a.config) && a.inMemory {
		if a.placed = a.box.takePlace(); !a.placed {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			defer a.box.m.clock.AfterFunc(d, cancel)()
			a.placed = a.box.waitForPlace(ctx)
		}
	}
	// The breaker may have opened during the wait.
	if a.refused = a.box.outlook(a.config); a.refused != nil {
		a.leavePlace()
	}
}

// askOn waits for a place for a mail that is stored already, until ctx ends.
func (m *Mailer) askOn(ctx context.Context, a *admission, s *sending) {
	a.ask(ctx, m.options.Budget)
	if a.placed && m.noteAttempt(s) != nil {
		a.leavePlace()
	}
	if !a.placed {
		_ = m.update(s, a.queued) // after an error the entry is still PENDING, which means the same
	}
}

// queued records in an entry that the mail is queued, and why, if that is known.
func (a *admission) queued(log *catalog.MailLog) {
	log.Status, log.NextAttemptAt = catalog.MailRetrying, log.CreatedAt
	if a.refused != nil {
		log.ErrorCode, log.ErrorMessage = a.refused.Code, explain(a.refused)
	}
}

// handOver passes what the admission holds to an attempt. The attempt calls leave when it no longer needs any of it.
func (a *admission) handOver() (leave func()) {
	rest := *a
	a.inMemory, a.placed = false, false
	return rest.leave
}

// leave releases what the admission holds.
func (a *admission) leave() {
	if a.inMemory {
		a.inMemory = false
		a.box.m.waiting.add(a.box.project, 0, -a.size)
	}
	a.leavePlace()
}

// leavePlace releases the place, if there is one.
func (a *admission) leavePlace() {
	if a.placed {
		a.placed = false
		a.box.leave(nil)
	}
}
