package mailer

import (
	"context"
	"time"

	"fingerpost/resolver/catalog"
)

var (
	errDraining      = &catalog.Error{Code: catalog.CodeUnavailable, Message: "the server is shutting down"}
	errSuspended     = &catalog.Error{Code: catalog.CodeProjectSuspended, Message: "the project is suspended"}
	errDisabled      = &catalog.Error{Code: catalog.CodeMailDisabled, Message: "the project's mailEnabled is false"}
	errNotConfigured = &catalog.Error{Code: catalog.CodeSMTPNotConfigured, Message: "the project has no active SMTP config"}
)

// Send accepts a mail, tries once, and says within Options.Budget what came of it (mailer/README.md, Send). The error
// is a *catalog.Error, and then nothing was accepted. When ctx ends the answer is given as if the budget had ended.
//
// What the contract leaves open: with an SMTP config whose breaker is open the mail is queued at once, without an attempt, and
// waits for what closes the breaker as those before it do; its entry has the code. A secret that cannot be opened on this node
// is UNAVAILABLE, and nothing is accepted.
func (m *Mailer) Send(ctx context.Context, s Send) (Receipt, error) {
	if !m.begin() {
		return Receipt{}, errDraining
	}
	defer m.end()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer m.clock.AfterFunc(m.options.Budget, cancel)()

	id := s.ProjectID
	if s.Domain != "" {
		var err error
		if id, err = m.options.Projects.ProjectOfDomain(s.Domain); err != nil {
			return Receipt{}, err
		}
	}
	p, err := m.options.Projects.MailProject(id)
	switch {
	case err != nil:
		return Receipt{}, err
	case p.Project.Status == catalog.StatusSuspended:
		return Receipt{}, errSuspended
	case s.IdempotencyKey != "":
		return m.sendOnce(ctx, &s, p)
	}
	return m.send(ctx, &s, p)
}

// A parcel is a mail that has passed all checks.
type parcel struct {
	to   destination
	log  catalog.MailLog
	mail catalog.QueuedMail
	idem *catalog.Idempotency // nil for none
}

func (m *Mailer) send(ctx context.Context, s *Send, p *catalog.ProjectConfig) (Receipt, error) {
	parcel, err := m.pack(s, p)
	if err != nil {
		return Receipt{}, err
	}
	return m.deliver(ctx, parcel)
}

// pack makes the mail, with the checks in the contract's order.
func (m *Mailer) pack(s *Send, p *catalog.ProjectConfig) (*parcel, error) {
	switch {
	case !p.Service.MailEnabled && !s.Rehearsal:
		return nil, errDisabled
	case p.SMTP == nil || !p.SMTP.Active:
		return nil, errNotConfigured
	}
	rendered, age, err := m.content(s, p)
	if err != nil {
		return nil, err
	}
	to, err := m.open(p)
	if err != nil {
		return nil, &catalog.Error{Code: catalog.CodeUnavailable, Message: err.Error()}
	}
	now, logID := m.now(), m.options.Ledger.NewMailID()
	draft := Draft{
		FromEmail: p.SMTP.FromEmail, FromName: p.SMTP.FromName, ReplyTo: p.SMTP.ReplyTo, ToEmail: s.ToEmail,
		Subject: rendered.Subject, HTML: rendered.HTML, Text: rendered.Text,
		MessageID: NewMessageID(logID, p.SMTP.FromEmail), Date: now,
	}
	message, err := m.composer.compose(draft)
	if err != nil {
		return nil, err
	}
	envelope := draft.Envelope()
	c := &parcel{
		to: to,
		log: catalog.MailLog{
			ID: logID, ProjectID: p.Project.ID, ProviderType: catalog.ProviderSMTP, ToEmail: s.ToEmail, Subject: rendered.Subject,
			TemplateCode: s.TemplateCode, MessageID: draft.MessageID, ServiceName: s.ServiceName, CreatedAt: now,
		},
		mail: catalog.QueuedMail{
			LogID: logID, ProjectID: p.Project.ID, From: envelope.From, To: envelope.To,
			ExpiresAt: now.Add(age).Truncate(time.Millisecond), Message: message,
		},
	}
	if s.IdempotencyKey != "" {
		c.idem = &catalog.Idempotency{
			ProjectID: p.Project.ID, Key: s.IdempotencyKey, Request: s.Request, LogID: logID, ExpiresAt: now.Add(keepIdempotency),
		}
	}
	return c, nil
}

// now is the moment as the ledger keeps it.
func (m *Mailer) now() time.Time { return m.clock.Now().UTC().Truncate(time.Microsecond) }

// content renders what the mail says, and how long that is worth sending.
func (m *Mailer) content(s *Send, p *catalog.ProjectConfig) (r Rendered, age time.Duration, err error) {
	if s.TemplateCode == "" {
		r = Rendered{Subject: s.Subject, HTML: s.BodyHTML, Text: s.BodyText}
		if r.Text == "" {
			r.Text = PlainText(r.HTML)
		}
		return r, maxAge(nil), nil
	}
	t, err := m.options.Projects.MailTemplate(p.Project.ID, s.TemplateCode)
	if err != nil {
		return r, 0, err
	}
	parsed, err := m.templates.get(t)
	if err != nil {
		return r, 0, err
	}
	r, problems := parsed.Render(WithProjectName(s.Variables, p.Project.Name))
	if len(problems) > 0 {
		return r, 0, &catalog.Error{Code: catalog.CodeValidation, Message: "the template cannot be filled in with these variables", Problems: problems}
	}
	return r, maxAge(t), nil
}

// deliver accepts a mail and tries once. What is not tried within the request is queued: its entry is RETRYING, due at once.
func (m *Mailer) deliver(ctx context.Context, c *parcel) (Receipt, error) {
	if err := m.admit(c.log.ProjectID); err != nil {
		return Receipt{}, err
	}
	b := m.outbox(c.log.ProjectID)
	defer m.leaveOutbox(b)
	a := admission{box: b, config: c.to.fingerprint, size: len(c.mail.Message)}
	a.kept = b.keepMessage(a.size)
	defer a.leave()
	a.ask(ctx, shortly)
	wait := !a.placed && a.kept && a.refused == nil && ctx.Err() == nil && b.hopeful()
	switch {
	case a.placed:
		c.log.Status, c.log.Attempts = catalog.MailSending, 1
	case wait:
		c.log.Status, c.log.NextAttemptAt = catalog.MailPending, c.log.CreatedAt
	default:
		a.queued(&c.log)
	}
	there, err := m.options.Ledger.AcceptMail(&c.log, &c.mail, c.idem)
	if err != nil || there != nil {
		m.waiting.add(c.log.ProjectID, -1)
		if err != nil {
			return Receipt{}, err
		}
		return m.replay(there, c.idem.Request)
	}
	s := &sending{box: b, expires: c.mail.ExpiresAt, log: c.log, done: make(chan struct{})}
	if wait {
		m.askOn(ctx, &a, s)
	}
	if a.placed {
		m.tryWithin(ctx, s, c, a.handOver())
	} else {
		b.add(newItem(s.log.ID, s.log.NextAttemptAt, s.expires))
	}
	return m.receipt(s), nil
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

// shortly is how long a send waits for a place before it is accepted as PENDING, which costs one more synced write.
const shortly = time.Second

// An admission is a send's way to a place in an outbox.
type admission struct {
	box     *outbox
	config  fingerprint
	size    int      // of the message
	kept    bool     // the message stays in memory; else it is queued
	placed  bool     // it has a place
	refused *Outcome // the breaker is open; nil otherwise
}

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

// queued notes in an entry that the mail waits with the others of its project, and why where that is known.
func (a *admission) queued(log *catalog.MailLog) {
	log.Status, log.NextAttemptAt = catalog.MailRetrying, log.CreatedAt
	if a.refused != nil {
		log.ErrorCode, log.ErrorMessage = a.refused.Code, explain(a.refused)
	}
}

// leavePlace gives the place back, if there is one.
func (a *admission) leavePlace() {
	if a.placed {
		a.placed = false
		a.box.leavePlace()
	}
}

// leave gives everything back that it has.
func (a *admission) leave() {
	if a.kept {
		a.kept = false
		a.box.dropMessage(a.size)
	}
	a.leavePlace()
}

// handOver leaves to an attempt what the admission has: it calls the result once it needs nothing of it any more.
func (a *admission) handOver() (leave func()) {
	rest := *a
	a.kept, a.placed = false, false
	return rest.leave
}

// tryWithin makes the attempt of a send, which goes on in the background when ctx ends first.
func (m *Mailer) tryWithin(ctx context.Context, s *sending, c *parcel, leave func()) {
	m.gate.inside.Add(1) // allowed while Send itself is inside
	b := m.outbox(c.log.ProjectID)
	m.counters.attempts.Add(1)
	go func() {
		defer m.end()
		m.try(s, c.to, &c.mail, leave)
		m.leaveOutbox(b)
		m.counters.attempts.Add(-1)
	}()
	select {
	case <-s.done:
	case <-ctx.Done():
		m.detach(s)
	}
}

// detach lets a send go while its attempt goes on. From now on the entry says what its caller is told.
func (m *Mailer) detach(s *sending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.concluded {
		return
	}
	s.answered = true
	s.log.Status = catalog.MailRetrying // with no time for the next attempt, see underWay
	if err := m.options.Ledger.UpdateMail(&s.log); err != nil {
		s.log.Status = catalog.MailSending // which is what the ledger has
	}
}

// receipt says what has become of a mail by now.
func (m *Mailer) receipt(s *sending) Receipt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Receipt{
		LogID: s.log.ID, MessageID: s.log.MessageID,
		Sent:   s.log.Status == catalog.MailSent,
		Failed: s.failed,
		Queued: !s.log.Status.Ended(),
	}
}
