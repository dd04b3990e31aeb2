package mailer

import (
	"time"

	"fingerpost/resolver/catalog"
)

// A hold is why a project's mail that waits is not tried. It ends when the files say something else, which look finds
// out, or when a send has passed all checks.
type hold struct {
	code    catalog.Code
	message string
	since   time.Time

	// The breaker: an attempt has shown that this config is no good (BadConfig). Zero for other holds.
	fingerprint fingerprint
	outcome     Outcome
}

// goneGrace is how long a project may be missing before its mail fails: files are moved, and checked out anew.
const goneGrace = time.Minute

// gone reports that there is no such project.
func (h *hold) gone() bool { return h.code == catalog.CodeNotFound }

// over reports that the mail may go on to its end.
func (h *hold) over(now time.Time) bool { return h.gone() && !now.Before(h.since.Add(goneGrace)) }

// outlook is what is known of an SMTP config before an attempt with it: an open breaker's outcome, or nil.
func (b *outbox) outlook(config fingerprint) *Outcome {
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

// proceed ends what kept mail waiting: a hold, and what is known of a server that is not the project's any more. A config
// that the breaker holds back stays held. It reports whether mail may be tried.
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

// release closes the breaker on a config that was seen to work.
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

// forgive closes the breaker, whatever the config.
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

// resume forgets what kept mail waiting, and makes all of it due. The caller holds mu.
func (b *outbox) resume() {
	b.hold, b.failure = nil, failure{}
	now := b.m.clock.Now().UnixMilli()
	for i := range b.later.list { // what was in order is so still: the list stays a heap
		b.later.list[i].at = min(b.later.list[i].at, now)
	}
}

// wait puts a hold on the outbox. The time of one for the same reason stays. It reports whether nothing can be hoped for any
// more.
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

// note draws the conclusions from an attempt for the mail that waits.
func (b *outbox) note(config fingerprint, o *Outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.m.clock.Now()
	switch {
	case reached(o):
		b.failure = failure{}
	case o.Class != Temporary && o.Class != Uncertain:
		// Refused for good before the mail was spoken of: that says nothing of the next one.
	case !now.Before(b.failure.until) || b.failure.with != config:
		// Attempts that began together and failed together count once.
		b.failure.inRow++
		b.failure.with, b.failure.until = config, now.Add(pauseAfter(b.failure.inRow))
	}
}

// reached reports that the server has spoken about this very mail: it works.
func reached(o *Outcome) bool {
	return o.Class == Accepted || aboutMail(o.Stage) && o.SMTPCode != 0 && o.SMTPCode != 421
}

// configLevel reports whether the next mail would fare no better. It counts TLS in, of
// which the table in mailer/README.md says only that the attempt has failed for good; so does what stands in the way of AUTH.
func configLevel(o *Outcome) bool {
	switch o.Stage {
	case StageTLS, StageSTARTTLS, StageAuth:
		return o.Class == Permanent
	}
	return false
}

// aboutMail reports whether connecting, TLS and AUTH were through.
func aboutMail(s Stage) bool {
	switch s {
	case StageMail, StageRcpt, StageData, StageBody, StageEOD:
		return true
	}
	return false
}

// reason is why the outbox's mail waits, nil where that is the time of the next attempt.
func (b *outbox) reason() *hold {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.hold
}

// refused opens the breaker. It reports false where another attempt, at the same time, has done so.
func (m *Mailer) refused(b *outbox, config fingerprint, o *Outcome) bool {
	if b.outlook(config) != nil {
		return false
	}
	b.wait(hold{code: o.Code, message: o.Message, fingerprint: config, outcome: *o})
	m.log.Warn("an SMTP config does not work, and is not tried again until it changes", "project", b.project, "code", string(o.Code))
	return true
}

// lookAgain is for when the attempt that opened the breaker is concluded: the config may have changed while
// it was under way, and the breaker be closed again without the attempt's mail having been there to become due.
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

// needLook picks the outboxes whose mail may wait for a change.
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

// look finds out whether a project's mail can be tried, and begins with it if so.
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
