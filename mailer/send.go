package mailer

import (
	"context"
	"strings"
	"sync"
	"time"

	"fingerpost/mailer/message"
	"fingerpost/mailer/smtp"
	"fingerpost/mailer/template"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/trace"
)

var (
	errDraining      = &catalog.Error{Code: catalog.CodeUnavailable, Message: "the server is shutting down"}
	errSuspended     = &catalog.Error{Code: catalog.CodeProjectSuspended, Message: "the project is suspended"}
	errDisabled      = &catalog.Error{Code: catalog.CodeMailDisabled, Message: "the project's mailEnabled is false"}
	errNotConfigured = &catalog.Error{Code: catalog.CodeSMTPNotConfigured,
		Message: "the project has no active SMTP config"}
)

// The steps of a send: Send finds the project; prepare checks, renders and composes; stoppedBy asks the suppression list
// (suppress.go); deliver stores the mail and passes it to its first attempt, or to the outbox; try makes the attempt through the Carrier; conclude turns the outcome into
// the state of the mail; save stores that, and queues the mail unless it has reached its end. Queued mail comes back to
// try through retry (retry.go).

// Send accepts a mail, tries once, and reports the result within Options.Budget. The error is a *catalog.Error, and
// then nothing was accepted. When ctx ends, Send answers as if the budget had ended.
//
// If the breaker of the SMTP config is open, the mail is queued without an attempt, and its entry has the code. If a
// secret cannot be opened on this node, the error is UNAVAILABLE and nothing is accepted.
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
	if err == nil {
		trace.From(ctx).Set("fingerpost.project", p.Project.Slug)
	}
	switch {
	case err != nil:
		return Receipt{}, err
	case p.Project.Status == catalog.StatusSuspended:
		if r, found, err := m.Repeat(id, s.IdempotencyKey, s.Request); s.IdempotencyKey != "" && (found || err != nil) {
			return r, err
		}
		return Receipt{}, errSuspended
	case s.IdempotencyKey != "":
		return m.sendOnce(ctx, &s, p)
	}
	return m.send(ctx, &s, p)
}

// A prepared mail has passed all checks.
type prepared struct {
	to   destination
	log  catalog.MailLog
	mail catalog.QueuedMail
	idem *catalog.Idempotency // nil for none
}

func (m *Mailer) send(ctx context.Context, s *Send, p *catalog.ProjectConfig) (Receipt, error) {
	c, err := m.prepare(s, p)
	if err != nil {
		return Receipt{}, err
	}
	by, err := m.stoppedBy(&c.mail)
	switch {
	case err != nil:
		return Receipt{}, err
	case by != nil:
		return m.suppress(ctx, c, by)
	}
	return m.deliver(ctx, c)
}

// prepare makes the mail. The order of its checks decides which error a caller gets: mail switched off, no SMTP config,
// template and variables, secrets, addresses and texts.
func (m *Mailer) prepare(s *Send, p *catalog.ProjectConfig) (*prepared, error) {
	switch {
	case !p.Service.MailEnabled && !s.Rehearsal:
		return nil, errDisabled
	case p.SMTP == nil || !p.SMTP.Active:
		return nil, errNotConfigured
	}
	rendered, err := m.content(s, p)
	if err != nil {
		return nil, err
	}
	to, err := m.open(p)
	if err != nil {
		return nil, &catalog.Error{Code: catalog.CodeUnavailable, Message: err.Error()}
	}
	now, logID := m.now(), m.options.Ledger.NewMailID()
	draft := message.Draft{
		FromEmail: p.SMTP.FromEmail, FromName: p.SMTP.FromName, ReplyTo: p.SMTP.ReplyTo, ToEmail: s.ToEmail,
		Subject: rendered.Subject, HTML: rendered.HTML, Text: rendered.Text,
		MessageID: message.NewMessageID(logID, p.SMTP.FromEmail), Date: now, Unsubscribe: rendered.unsubscribe,
	}
	message, err := message.Compose(draft)
	if err != nil {
		return nil, err
	}
	sender, recipient := draft.Envelope()
	c := &prepared{
		to: to,
		log: catalog.MailLog{
			ID: logID, ProjectID: p.Project.ID, ProviderType: catalog.ProviderSMTP, ToEmail: s.ToEmail,
			Subject:      rendered.Subject,
			TemplateCode: s.TemplateCode, MessageID: draft.MessageID, ServiceName: s.ServiceName, CreatedAt: now,
			AgainOf: s.AgainOf, Locale: rendered.locale,
		},
		mail: catalog.QueuedMail{
			LogID: logID, ProjectID: p.Project.ID, From: sender, To: recipient,
			ExpiresAt: now.Add(rendered.age).Truncate(time.Millisecond), Message: message,
			Category: rendered.category, Ignored: s.Ignored,
		},
	}
	if s.IdempotencyKey != "" {
		c.idem = &catalog.Idempotency{
			ProjectID: p.Project.ID, Key: s.IdempotencyKey, Request: s.Request, LogID: logID,
			ExpiresAt: now.Add(keepIdempotency),
		}
	}
	return c, nil
}

// A content is what a mail says.
type content struct {
	template.Rendered
	age         time.Duration // how long the mail may be tried
	locale      string        // of the template, "" for its own texts
	category    string        // of the template; "": none
	unsubscribe string        // address of the link with which the recipient leaves the category; "": none
}

// content renders subject and bodies.
func (m *Mailer) content(s *Send, p *catalog.ProjectConfig) (c content, err error) {
	if s.TemplateCode == "" {
		c = content{Rendered: template.Rendered{Subject: s.Subject, HTML: s.BodyHTML, Text: s.BodyText},
			age: new(catalog.Template).Lifetime()}
		if c.Text == "" {
			if c.Text, err = template.PlainText(c.HTML); err != nil {
				return c, &catalog.Error{Code: catalog.CodeValidation, Message: "the mail has no text part",
					Problems: catalog.Problems{{Path: "bodyHtml", Message: err.Error()}}}
			}
		}
		return c, nil
	}
	t, err := m.options.Projects.MailTemplate(p.Project.ID, s.TemplateCode)
	if err != nil {
		return c, err
	}
	t, c.locale = template.Localize(t, s.Locale)
	parsed, err := m.templates.Get(t, c.locale)
	if err != nil {
		return c, err
	}
	c.age, c.category = t.Lifetime(), t.Category
	if c.unsubscribe, err = m.unsubscribeLink(s, p, t); err != nil {
		return c, err
	}
	var problems catalog.Problems
	c.Rendered, problems = parsed.Render(withUnsubscribeLink(template.WithProject(s.Variables, &p.Project), c.unsubscribe))
	if len(problems) > 0 {
		return c, &catalog.Error{Code: catalog.CodeValidation,
			Message: "the template cannot be filled in with these variables", Problems: problems}
	}
	return c, nil
}

// deliver accepts a mail and tries once. A mail that gets no place within the request is queued: its entry is RETRYING,
// due at once.
func (m *Mailer) deliver(ctx context.Context, c *prepared) (Receipt, error) {
	if err := m.admit(c.log.ProjectID); err != nil {
		return Receipt{}, err
	}
	b := m.outbox(c.log.ProjectID)
	defer m.leaveOutbox(b)

	// A place for the attempt, if one is free soon.
	a := admission{box: b, config: c.to, size: len(c.mail.Message)}
	a.inMemory = m.waiting.reserve(b.project, a.size)
	defer a.leave()
	a.ask(ctx, shortly)
	wait := !a.placed && a.inMemory && a.refused == nil && ctx.Err() == nil && b.hopeful()

	// The ledger: one batch with the entry, the message and the Idempotency-Key.
	switch {
	case a.placed:
		c.log.Status, c.log.Attempts = catalog.MailSending, 1
	case wait:
		c.log.Status, c.log.NextAttemptAt = catalog.MailPending, c.log.CreatedAt
	default:
		a.queued(&c.log)
	}
	_, sync := trace.Start(ctx, "ledger.sync")
	there, err := m.options.Ledger.AcceptMail(&c.log, &c.mail, c.idem)
	sync.EndWith(err)
	if err != nil || there != nil {
		m.waiting.add(c.log.ProjectID, -1, 0)
		if err != nil {
			return Receipt{}, err
		}
		return m.replay(there, c.idem.Request)
	}
	// From here on the mail is accepted, and nothing can fail.

	// The attempt, or the queue.
	s := &sending{box: b, expires: c.mail.ExpiresAt, log: c.log, done: make(chan struct{}),
		cause: trace.From(ctx).Cause()}
	if wait {
		m.askOn(ctx, &a, s)
	}
	if a.placed {
		m.tryWithin(ctx, s, c, a.handOver())
	} else {
		b.add(s.item())
	}
	return m.receipt(s), nil
}

// tryWithin makes the attempt of a send. If ctx ends first, the attempt goes on in the background.
func (m *Mailer) tryWithin(ctx context.Context, s *sending, c *prepared, leave func()) {
	m.inflight.inside.Add(1) // allowed because Send itself is inside
	b := m.outbox(c.log.ProjectID)
	m.counters.attempts.Add(1)
	s.span = trace.From(ctx).Child("mail.attempt")
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

// detach answers a send while its attempt goes on. From then on the entry says that the mail is queued, as the answer
// does.
func (m *Mailer) detach(s *sending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.done: // at the same moment
		return
	default:
	}
	s.done = nil
	_ = m.update(s, func(log *catalog.MailLog) {
		log.Status = catalog.MailRetrying // without a time for the next attempt, see underWay
	})
}

// A sending is a mail whose attempt is running, or whose outcome is not stored yet.
type sending struct {
	box     *outbox
	expires time.Time
	span    *trace.Span // of the attempt that is next, or runs; nil: it is not traced
	cause   *trace.Span // see item

	mu     sync.Mutex      // guards what follows
	log    catalog.MailLog // the entry that the ledger has or will have
	failed *catalog.Error  // what the send answers if the mail has failed
	bounce string          // why the recipient goes onto the suppression list with the end of the mail; "": it does not
	// done is closed when the outcome is stored, or cannot be stored. It is nil if no send waits for the outcome: the send
	// was answered "queued", or the attempt is a later one.
	done chan struct{}
}

// entry returns a copy of the entry.
func (s *sending) entry() *catalog.MailLog {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := s.log
	return &log
}

// item is the mail in the queue.
func (s *sending) item() item {
	it := newItem(s.log.ID, s.log.NextAttemptAt, s.expires, s.box.m.clock.Now())
	it.cause = s.cause
	return it
}

// try makes an attempt that the ledger has recorded as running, and stores the outcome. leave releases the place in the
// outbox; try calls it as soon as the server has answered.
func (m *Mailer) try(s *sending, d destination, mail *catalog.QueuedMail, leave func()) {
	o := m.carry(s.span, d, mail)
	if o.Code != "" {
		s.span.Set("error.type", string(o.Code))
		s.span.Fail()
	}
	s.span.End()
	cut := m.inflight.attempts.Err() != nil && o.Class == smtp.Temporary
	bad := false // the current config
	if o.Class == smtp.BadConfig || configLevel(&o) {
		// A mail that was accepted under another sender shows nothing about the config's current sender.
		from, _ := catalog.ParseAddress(d.from)
		bad = !aboutMail(o.Stage) || mail.From == from
		o.Class = smtp.BadConfig
		if !bad && o.Code == smtp.CodeSenderRejected {
			o.Class = smtp.Permanent // a new sender in the config does not change this mail's
		}
	}
	if !cut {
		s.box.noteAttempt(d, &o)
	}
	leave()
	// Drain may have stopped waiting and closed the ledger. The ledger then says that this attempt was running, which is
	// right.
	m.inflight.ledgerUse.RLock()
	defer m.inflight.ledgerUse.RUnlock()
	if m.inflight.abandoned {
		return
	}
	// Before the send is answered, so that the next send finds the breaker open.
	opened := bad && m.refused(s.box, d, &o, s.entry())
	m.conclude(s, &o, cut)
	if opened {
		m.lookAgain(s.box)
	}
}

// conclude stores the outcome of an attempt. cut means that Drain cut the attempt off before the server had the mail:
// such an attempt does not count.
func (m *Mailer) conclude(s *sending, o *smtp.Outcome, cut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := m.clock.Now()
	log := &s.log
	if !cut {
		log.ErrorCode, log.ErrorMessage, log.SMTPCode = o.Code, explain(o), o.SMTPCode
		said := log.ErrorMessage
		if o.Class == smtp.Accepted {
			said = o.Reply
		}
		log.Attempted(catalog.MailAttempt{Number: log.Attempts, At: now.UTC().Truncate(time.Microsecond),
			Stage: string(o.Stage), Code: o.Code, SMTPCode: o.SMTPCode, Message: shortened(said)})
	}
	log.NextAttemptAt = time.Time{}
	switch {
	case cut:
		log.Status, log.NextAttemptAt = catalog.MailRetrying, earlier(now, s.expires)
		log.Attempts--
	case o.Class == smtp.Accepted:
		log.Status, log.SentAt = catalog.MailSent, now
		log.ErrorCode, log.ErrorMessage = "", ""
		if m.options.Keep {
			log.ProviderType = catalog.ProviderSink
			m.counters.kept.Add(1)
		} else {
			m.counters.sent.Add(1)
		}
	case o.Class == smtp.Permanent || o.Class == smtp.BadConfig && s.done != nil:
		log.Status = catalog.MailFailed
		s.failed = &catalog.Error{Code: o.Code, Message: log.ErrorMessage, Problems: o.Problems}
		m.counters.failed.Add(1)
		if o.NoRecipient && m.listsBounces(s.box.project) {
			s.bounce = bounceNote(log, o)
		}
	default:
		// Also for BadConfig if the caller was answered that the mail is queued: it waits for the config to change.
		log.Status = catalog.MailRetrying
		if o.Class == smtp.Uncertain {
			log.Uncertain = true
			m.counters.uncertain.Add(1)
		} else {
			m.counters.retrying.Add(1)
		}
		log.NextAttemptAt = earlier(now.Add(waitAfter(log.Attempts, o.RetryIn)).Truncate(time.Millisecond), s.expires)
	}
	m.save(s)
	if s.done != nil {
		close(s.done)
	}
}

// save writes the entry of a concluded sending, and queues the mail unless it has reached its end. If the ledger cannot
// write, tick tries again: a mail that was sent must not be sent a second time because of that. The caller holds s.mu.
func (m *Mailer) save(s *sending) {
	err := m.storeEnd(s)
	if gone(err) || err == nil && s.log.Status.Ended() {
		m.waiting.add(s.box.project, -1, 0)
		return
	}
	if err != nil {
		if !unavailable(err) {
			m.options.Logger.Error("what came of an attempt cannot be stored", "project", s.log.ProjectID, "logId", s.log.ID,
				"error", err)
		}
		m.mu.Lock()
		s.box.users++
		m.unsaved = append(m.unsaved, s)
		m.mu.Unlock()
		return
	}
	s.box.add(s.item())
}

// receipt reports the mail's current state.
func (m *Mailer) receipt(s *sending) Receipt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Receipt{
		LogID: s.log.ID, MessageID: s.log.MessageID,
		Sent:   s.log.Status == catalog.MailSent,
		Kept:   s.log.ProviderType == catalog.ProviderSink,
		Failed: s.failed,
		Queued: !s.log.Status.Ended(),
	}
}

// now returns the time in the ledger's precision.
func (m *Mailer) now() time.Time { return m.clock.Now().UTC().Truncate(time.Microsecond) }

// explain returns an outcome's text for people: what happened, and the server's reply.
func explain(o *smtp.Outcome) string {
	if o.Reply == "" {
		return o.Message
	}
	return strings.TrimSuffix(o.Message, ".") + ". The server said: " + o.Reply
}

// maxAttemptText bounds the text of an attempt in the history, in bytes.
const maxAttemptText = 400

func shortened(text string) string {
	if len(text) > maxAttemptText {
		text = strings.ToValidUTF8(text[:maxAttemptText], "") + "…"
	}
	return text
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
