package mailer

import (
	"cmp"
	"slices"
	"time"

	"fingerpost/mailer/smtp"
	"fingerpost/resolver/catalog"
)

// A hold is the reason why a project's queued mail is not tried. It ends when the files have changed, which look finds
// out, or when a send has passed all checks.
type hold struct {
	code    catalog.Code
	message string
	since   time.Time

	// The breaker: the config for which an attempt ended with BadConfig. Zero for other holds.
	config  destination
	outcome smtp.Outcome
}

// goneGrace is how long a project may be missing before its mail fails, because a move or a checkout removes files for
// a moment.
const goneGrace = time.Minute

// gone reports whether the project is missing.
func (h *hold) gone() bool { return h.code == catalog.CodeNotFound }

// waitsFor says in words what ends the hold.
func (h *hold) waitsFor() string {
	switch h.code {
	case catalog.CodeNotFound:
		return "the project: it was deleted"
	case catalog.CodeProjectSuspended:
		return "the project's status: it is suspended"
	case catalog.CodeSMTPNotConfigured:
		return "an active SMTP config: the project has none"
	case catalog.CodeUnavailable:
		return "a secret of the SMTP config: " + h.message
	}
	return "a change of the SMTP config: it failed with " + string(h.code)
}

// over reports whether the mail fails now.
func (h *hold) over(now time.Time) bool { return h.gone() && !now.Before(h.since.Add(goneGrace)) }

// outlook returns the outcome that opened the breaker of an SMTP config, or nil if the breaker is closed.
func (b *outbox) outlook(config destination) *smtp.Outcome {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.breakerOpen(config) {
		return nil
	}
	o := b.hold.outcome
	o.Message = "Not tried, because the SMTP config has not changed since it failed. " + o.Message
	o.Took = nil
	return &o
}

// breakerOpen reports whether the breaker is open for a config. The caller holds mu.
func (b *outbox) breakerOpen(config destination) bool {
	return b.hold != nil && b.hold.config == config
}

// proceed reports whether mail with this config may be tried: not while its breaker is open. It ends every other hold,
// and the pause of a server that the project no longer uses.
func (b *outbox) proceed(config destination) bool {
	open := false
	b.resumeIf(func() bool {
		open = b.breakerOpen(config)
		return !open && (b.hold != nil || b.failure.inRow > 0 && b.failure.with != config)
	})
	return !open
}

// resumeIf ends the hold and the pause, and makes all queued mail due, if over returns true. over runs with mu.
func (b *outbox) resumeIf(over func() bool) {
	b.mu.Lock()
	resumed := over()
	if resumed {
		b.hold, b.failure = nil, failure{}
		now := b.m.clock.Now().UnixMilli()
		for i := range b.later.list { // subtracting a constant keeps the order, so the list stays a heap
			b.later.list[i].at = min(b.later.list[i].at, now)
		}
	}
	b.mu.Unlock()
	if resumed {
		b.run()
	}
}

// wait puts a hold on the outbox. A hold for the same reason keeps its start time; one without a start begins now. It reports whether the mail has
// waited too long and fails.
func (b *outbox) wait(h hold) (over bool) {
	b.mu.Lock()
	now := b.m.clock.Now()
	if h.since.IsZero() || h.since.After(now) {
		h.since = now
	}
	if b.hold != nil && b.hold.code == h.code && b.hold.config == h.config {
		h.since = b.hold.since
	}
	b.hold = &h
	over = h.over(now)
	b.mu.Unlock()
	b.run()
	return over
}

// noteAttempt updates breaker and pause after an attempt.
func (b *outbox) noteAttempt(config destination, o *smtp.Outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.m.clock.Now()
	switch {
	case reached(o):
		b.failure = failure{}
	case o.Class != smtp.Temporary && o.Class != smtp.Uncertain:
		// Refused for good before the stage MAIL: that says nothing about the next attempt.
	case !now.Before(b.failure.until) || b.failure.with != config:
		// Attempts that ran at the same time and failed count once.
		b.failure.inRow++
		b.failure.with, b.failure.until = config, now.Add(pauseAfter(b.failure.inRow))
	}
}

// reached reports whether the server has answered about this mail, so it works.
func reached(o *smtp.Outcome) bool {
	return o.Class == smtp.Accepted || aboutMail(o.Stage) && o.SMTPCode != 0 && o.SMTPCode != 421
}

// configLevel reports whether a permanent outcome applies to every mail with this config. TLS and AUTH fail for each
// mail in the same way, so the breaker opens although package smtp calls them Permanent.
func configLevel(o *smtp.Outcome) bool {
	return o.Class == smtp.Permanent && slices.Contains([]smtp.Stage{smtp.StageTLS, smtp.StageSTARTTLS, smtp.StageAuth},
		o.Stage)
}

// aboutMail reports whether the stage comes after connecting, TLS and AUTH.
func aboutMail(s smtp.Stage) bool {
	return slices.Contains([]smtp.Stage{smtp.StageMail, smtp.StageRcpt, smtp.StageData, smtp.StageBody, smtp.StageEOD}, s)
}

// reason returns the outbox's hold, nil if its mail only waits for the next attempt.
func (b *outbox) reason() *hold {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.hold
}

// refused opens the breaker. It returns false if a concurrent attempt has opened it already. log is the entry of the mail
// that was tried.
func (m *Mailer) refused(b *outbox, config destination, o *smtp.Outcome, log *catalog.MailLog) bool {
	if b.outlook(config) != nil {
		return false
	}
	b.wait(hold{code: o.Code, message: o.Message, since: m.failsSince(log, o.Code), config: config, outcome: *o})
	m.options.Logger.Warn("an SMTP config does not work, and is not tried again until it changes", "project", b.project,
		"code", string(o.Code))
	return true
}

// maxSinceEntries bounds the entries that failsSince reads.
const maxSinceEntries = 100

// failsSince returns since when a project's mail fails with a code, as the log has it: an earlier process may have stopped
// for it. log is the entry of a mail that fails with it now. Zero: it failed with nothing or with something else before.
func (m *Mailer) failsSince(log *catalog.MailLog, code catalog.Code) (since time.Time) {
	if log.ErrorCode != code {
		return since
	}
	newest, _, err := m.options.Ledger.MailLogs(log.ProjectID, catalog.MailQuery{Page: 1, Limit: maxSinceEntries})
	if err != nil {
		return log.CreatedAt
	}
	for i := range newest {
		e := &newest[i]
		switch {
		case e.ErrorCode == code:
			since = e.CreatedAt
			for _, a := range e.History {
				if a.Code != code {
					since = a.At // it was tried before, and failed otherwise or not at all
				}
			}
		case e.ErrorCode != "" || e.Status.Ended():
			return since
		}
	}
	return since
}

// lookAgain follows the attempt that opened the breaker. If the config changed during the attempt, the breaker was
// closed before this mail was back in the queue, so look must run once more.
func (m *Mailer) lookAgain(b *outbox) {
	m.readConfig(b)
	b.resumeIf(func() bool { return b.hold == nil })
}

// needLook returns the outboxes whose mail may wait for a change.
func needLook(boxes []*outbox) (some []*outbox) {
	for _, b := range boxes {
		b.mu.Lock()
		if b.hold != nil || b.failure.inRow > 0 {
			some = append(some, b)
		}
		b.mu.Unlock()
	}
	return some
}

// readConfig reads a project's config, and lets its queued mail go on or wait accordingly.
func (m *Mailer) readConfig(b *outbox) {
	d, wait, err := m.destination(b.project)
	switch {
	case err != nil: // the store cannot be read: nothing is known
	case wait != nil:
		b.wait(*wait)
	default:
		b.proceed(d)
	}
}

// ConfigChanged reports that a project's files have changed; 0 means any project's. Mail that waits for a change of its
// SMTP config is tried at once. It does not block.
func (m *Mailer) ConfigChanged(projectID int64) {
	waiting := needLook(m.existing(projectID))
	if len(waiting) == 0 || !m.begin() {
		return
	}
	go func() {
		defer m.end()
		for _, b := range waiting {
			m.readConfig(b)
		}
	}()
}

// TryAgain closes all breakers, for example after a server was repaired, and does what ConfigChanged(0) does. A config
// that still does not work opens its breaker again at the first attempt.
func (m *Mailer) TryAgain() {
	for _, b := range m.existing(0) {
		b.resumeIf(func() bool { return b.hold != nil && b.hold.config != destination{} })
	}
	m.ConfigChanged(0)
}

// WaitingFor says what the queued mail of a project waits for, "" if only for its next attempt.
func (m *Mailer) WaitingFor(project int64) string {
	for _, b := range m.existing(project) {
		if h := b.reason(); h != nil {
			return h.waitsFor()
		}
	}
	return ""
}

// A Stopped is a project whose mail is not tried until something changes in the files.
type Stopped struct {
	ProjectID int64
	Code      catalog.Code // SMTP_… if an attempt has shown that the config does not work; else why there is none to try
	Since     time.Time
	Waiting   int // mails
}

// survey finds for Counts which mail is the oldest that waits, and how much mail has stopped. It costs a look at each
// waiting mail.
func (m *Mailer) survey(boxes []*outbox) {
	var oldest, projects, mails int64
	for _, b := range boxes {
		b.mu.Lock()
		if b.hold != nil {
			projects++
			mails += int64(b.later.Len() + b.ready.Len())
		} else {
			for _, list := range [][]item{b.later.list, b.ready.list} {
				for i := range list {
					if oldest == 0 || list[i].id < oldest {
						oldest = list[i].id
					}
				}
			}
		}
		b.mu.Unlock()
	}
	m.counters.oldest.Store(oldest)
	m.counters.stoppedProjects.Store(projects)
	m.counters.stoppedMails.Store(mails)
}

// Stopped lists the projects whose mail has stopped, by id.
func (m *Mailer) Stopped() (all []Stopped) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range m.outboxes {
		b.mu.Lock()
		if b.hold != nil {
			all = append(all, Stopped{b.project, b.hold.code, b.hold.since, b.later.Len() + b.ready.Len()})
		}
		b.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b Stopped) int { return cmp.Compare(a.ProjectID, b.ProjectID) })
	return all
}
