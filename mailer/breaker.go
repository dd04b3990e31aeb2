package mailer

import (
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
	fingerprint fingerprint
	outcome     smtp.Outcome
}

// goneGrace is how long a project may be missing before its mail fails, because a move or a checkout removes files for
// a moment.
const goneGrace = time.Minute

// gone reports whether the project is missing.
func (h *hold) gone() bool { return h.code == catalog.CodeNotFound }

// over reports whether the mail fails now.
func (h *hold) over(now time.Time) bool { return h.gone() && !now.Before(h.since.Add(goneGrace)) }

// outlook returns the outcome that opened the breaker of an SMTP config, or nil if the breaker is closed.
func (b *outbox) outlook(config fingerprint) *smtp.Outcome {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hold == nil || b.hold.fingerprint != config {
		return nil
	}
	o := b.hold.outcome
	o.Message = "Not tried, because the SMTP config has not changed since it failed. " + o.Message
	o.Took = nil
	return &o
}

// proceed reports whether mail with this config may be tried: not while its breaker is open. It ends every other hold,
// and the pause of a server that the project no longer uses.
func (b *outbox) proceed(config fingerprint) bool {
	b.mu.Lock()
	if b.hold != nil && b.hold.fingerprint == config {
		b.mu.Unlock()
		return false
	}
	changed := b.hold != nil || b.failure.inRow > 0 && b.failure.with != config
	if changed {
		b.resume()
	}
	b.mu.Unlock()
	if changed {
		b.run()
	}
	return true
}

// release closes the breaker if it is open for this config, which has just worked.
func (b *outbox) release(config fingerprint) {
	b.mu.Lock()
	if b.hold == nil || b.hold.fingerprint != config {
		b.mu.Unlock()
		return
	}
	b.resume()
	b.mu.Unlock()
	b.run()
}

// forgive closes the breaker for every config.
func (b *outbox) forgive() {
	b.mu.Lock()
	open := b.hold != nil && b.hold.fingerprint != fingerprint{}
	if open {
		b.resume()
	}
	b.mu.Unlock()
	if open {
		b.run()
	}
}

// resume ends the hold and the pause, and makes all queued mail due. The caller holds mu.
func (b *outbox) resume() {
	b.hold, b.failure = nil, failure{}
	now := b.m.clock.Now().UnixMilli()
	for i := range b.later.list { // subtracting a constant keeps the order, so the list stays a heap
		b.later.list[i].at = min(b.later.list[i].at, now)
	}
}

// wait puts a hold on the outbox. A hold for the same reason keeps its start time. It reports whether the mail has
// waited too long and fails.
func (b *outbox) wait(h hold) (over bool) {
	b.mu.Lock()
	now := b.m.clock.Now()
	h.since = now
	if b.hold != nil && b.hold.code == h.code && b.hold.fingerprint == h.fingerprint {
		h.since = b.hold.since
	}
	b.hold = &h
	over = h.over(now)
	b.mu.Unlock()
	b.run()
	return over
}

// note updates breaker and pause after an attempt.
func (b *outbox) note(config fingerprint, o *smtp.Outcome) {
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
	switch o.Stage {
	case smtp.StageTLS, smtp.StageSTARTTLS, smtp.StageAuth:
		return o.Class == smtp.Permanent
	}
	return false
}

// aboutMail reports whether the stage comes after connecting, TLS and AUTH.
func aboutMail(s smtp.Stage) bool {
	switch s {
	case smtp.StageMail, smtp.StageRcpt, smtp.StageData, smtp.StageBody, smtp.StageEOD:
		return true
	}
	return false
}

// reason returns the outbox's hold, nil if its mail only waits for the next attempt.
func (b *outbox) reason() *hold {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.hold
}

// refused opens the breaker. It returns false if a concurrent attempt has opened it already.
func (m *Mailer) refused(b *outbox, config fingerprint, o *smtp.Outcome) bool {
	if b.outlook(config) != nil {
		return false
	}
	b.wait(hold{code: o.Code, message: o.Message, fingerprint: config, outcome: *o})
	m.log.Warn("an SMTP config does not work, and is not tried again until it changes", "project", b.project, "code", string(o.Code))
	return true
}

// lookAgain follows the attempt that opened the breaker. If the config changed during the attempt, the breaker was
// closed before this mail was back in the queue, so look must run once more.
func (m *Mailer) lookAgain(b *outbox) {
	m.look(b)
	b.mu.Lock()
	closed := b.hold == nil
	if closed {
		b.resume()
	}
	b.mu.Unlock()
	if closed {
		b.run()
	}
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

// look reads a project's config, and lets its queued mail go on or wait accordingly.
func (m *Mailer) look(b *outbox) {
	d, wait, err := m.destination(b.project)
	switch {
	case err != nil: // the store cannot be read: nothing is known
	case wait != nil:
		b.wait(*wait)
	default:
		b.proceed(d.fingerprint)
	}
}

// ConfigChanged reports that a project's files have changed; 0 means any project's. Mail that waits for a change of its
// SMTP config is tried at once. It does not block.
func (m *Mailer) ConfigChanged(projectID int64) {
	m.mu.Lock()
	var waiting []*outbox
	if projectID == 0 {
		for _, b := range m.outboxes {
			waiting = append(waiting, b)
		}
	} else if b := m.outboxes[projectID]; b != nil {
		waiting = append(waiting, b)
	}
	m.mu.Unlock()
	waiting = needLook(waiting)
	if len(waiting) == 0 || !m.begin() {
		return
	}
	go func() {
		defer m.end()
		for _, b := range waiting {
			m.look(b)
		}
	}()
}

// TryAgain closes all breakers, for example after a server was repaired, and does what ConfigChanged(0) does. A config
// that still does not work opens its breaker again at the first attempt.
func (m *Mailer) TryAgain() {
	m.mu.Lock()
	var all []*outbox
	for _, b := range m.outboxes {
		all = append(all, b)
	}
	m.mu.Unlock()
	for _, b := range all {
		b.forgive()
	}
	m.ConfigChanged(0)
}
