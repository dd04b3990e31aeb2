package mailer

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"fingerpost/mailer/message"
	"fingerpost/mailer/smtp"
	"fingerpost/resolver/catalog"
)

// A test is answered within testAnswer, including the reply to the final dot. Its SMTP session gets testTime; the rest
// is for the answer.
const (
	testAnswer = 15 * time.Second
	testTime   = testAnswer - time.Second
)

var errKeeps = &catalog.Error{Code: catalog.CodeUnavailable,
	Message: "this server keeps all mail and sends none (--mail-sink), so it tests no SMTP settings"}

// TestSMTP connects with the settings and sends one mail. A problem of the settings is a *catalog.Error SMTP_…, and the
// report shows how far the test got; a bad request is VALIDATION_ERROR. A test that passes closes the breaker of the
// same settings.
func (m *Mailer) TestSMTP(ctx context.Context, t TestRequest) (TestReport, error) {
	return m.tested(t, func(report *TestReport) error {
		c := t.Config
		c.CAFile = ""
		if err := untried(t, c.Validate()); err != nil {
			return err
		}
		server := serverOf(&c)
		for _, s := range secretsOf(&c, &server) {
			*s.to = s.secret.Ref
		}
		return m.test(ctx, t, &c, server, report)
	})
}

// TestStored is TestSMTP with the SMTP config that a project sends with, its secrets included, whether active or not. Of
// t it uses no settings.
func (m *Mailer) TestStored(ctx context.Context, project int64, t TestRequest) (TestReport, error) {
	return m.tested(t, func(report *TestReport) error {
		if err := untried(t, nil); err != nil {
			return err
		}
		p, err := m.options.Projects.MailProject(project)
		switch {
		case err != nil:
			return err
		case p.SMTP == nil:
			return &catalog.Error{Code: catalog.CodeSMTPNotConfigured, Message: "the project has no SMTP config"}
		}
		d, err := m.open(p)
		if err != nil {
			return &catalog.Error{Code: catalog.CodeUnavailable, Message: err.Error()}
		}
		return m.test(ctx, t, p.SMTP, d.server, report)
	})
}

// tested runs a test unless the Mailer sends nothing now.
func (m *Mailer) tested(t TestRequest, run func(*TestReport) error) (TestReport, error) {
	report := TestReport{ToEmail: t.ToEmail}
	if !m.begin() {
		return report, errDraining
	}
	defer m.end()
	if m.options.Keep {
		return report, errKeeps
	}
	err := run(&report)
	return report, err
}

// untried returns why a test cannot begin: the problems of its settings, and of the recipient.
func untried(t TestRequest, problems catalog.Problems) error {
	problems = slices.DeleteFunc(problems, func(p catalog.Problem) bool { return p.Warning })
	if msg := catalog.CheckAddress(t.ToEmail); msg != "" {
		problems.Addf("toEmail", "%s", msg)
	}
	if len(problems) == 0 {
		return nil
	}
	return &catalog.Error{Code: catalog.CodeValidation, Message: "the SMTP settings cannot be tried", Problems: problems}
}

// test sends one mail as c says, to a server.
func (m *Mailer) test(ctx context.Context, t TestRequest, c *catalog.SMTPConfig, server smtp.Server,
	report *TestReport) error {
	draft := message.Draft{
		FromEmail: c.FromEmail, FromName: c.FromName, ReplyTo: c.ReplyTo, ToEmail: t.ToEmail,
		Subject: "Test of your SMTP settings",
		Text: "This mail has come by the SMTP settings that were tested just now. They work.\n\nNobody needs to answer " +
			"it.\n",
		HTML: "<p>This mail has come by the SMTP settings that were tested just now. They work.</p>\n<p>Nobody needs " +
			"to answer it.</p>\n",

		MessageID: message.NewMessageID(m.options.Ledger.NewMailID(), c.FromEmail), Date: m.now(),
	}
	message, err := message.Compose(draft)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var late atomic.Bool
	defer m.clock.AfterFunc(testTime, func() {
		late.Store(true)
		cancel()
	})()
	defer context.AfterFunc(m.inflight.attempts, cancel)()
	sender, recipient := draft.Envelope()
	tell := func(step smtp.Step) {
		if t.OnStep != nil {
			t.OnStep(step.Name, step.Took)
		}
	}
	o := m.options.Carrier.SendAlone(ctx, server, smtp.Envelope{From: sender, To: recipient}, message, tell)
	report.Steps = o.Took
	report.Connected = aboutMail(o.Stage) || o.Class == smtp.Accepted
	report.MailSent = o.Class == smtp.Accepted
	if !report.MailSent {
		report.Reply = o.Reply // not in the message, whose text is fixed because forms search it
		e := &catalog.Error{Code: o.Code, Message: o.Message, Problems: o.Problems}
		if late.Load() {
			e.Message += fmt.Sprintf(" The stage %q did not end within the %s of a test.", testStage(&o), testTime)
		}
		return e
	}
	for _, b := range m.existing(0) {
		b.resumeIf(func() bool { return b.breakerOpen(destination{server, c.FromEmail}) })
	}
	return nil
}

// testStage names the stage in which an attempt ended. The look-up of the host has a name of its own here.
func testStage(o *smtp.Outcome) string {
	if o.Stage == smtp.StageDial && len(o.Took) > 0 && o.Took[len(o.Took)-1].Name == "dns" {
		return "dns"
	}
	return string(o.Stage)
}
