package mailer_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/mailer"
	"fingerpost/mailer/smtp"
	"fingerpost/resolver/catalog"
)

func TestSMTPTest(t *testing.T) {
	t.Parallel()
	k := testrig.NewSink(t)
	requireLogin(k, "right")
	r := newRig(t, project("acme", k))
	test := func(password string, change func(*mailer.TestRequest)) (mailer.TestReport, *catalog.Error) {
		q := mailer.TestRequest{
			Config: catalog.SMTPConfig{Host: "127.0.0.1", Port: k.Port(), Username: sinkUser, FromEmail: "hello@acme.example", FromName: "Acme",
				Password: catalog.Secret{Source: catalog.SecretPlain, Ref: password}},
			ToEmail: "me@acme.example",
		}
		if change != nil {
			change(&q)
		}
		report, err := r.TestSMTP(t.Context(), q)
		var e *catalog.Error
		if err != nil && !errors.As(err, &e) {
			t.Fatal(err)
		}
		return report, e
	}
	report, e := test("right", nil)
	if e != nil || !report.Connected || !report.MailSent || report.ToEmail != "me@acme.example" || len(report.Steps) == 0 {
		t.Errorf("report %+v, %v", report, e)
	}
	if m := k.Letters(); len(m) != 1 || m[0].From != "hello@acme.example" || m[0].To != "me@acme.example" {
		t.Errorf("mails %+v", m)
	}
	// The message is fixed, so that forms can search it; the server's text is separate.
	report, e = test("wrong", nil)
	if e == nil || e.Code != smtp.CodeAuthFailed || report.Connected || report.MailSent || len(e.Problems) != 2 || report.Reply == "" ||
		e.Message != "Authentication failed: the SMTP server rejected the username or password (535)" {
		t.Errorf("report %+v, %v", report, e)
	}
	k.Set(func(r *testrig.SinkRules) { r.Recipient = func(string) error { return errNobody } })
	if report, e := test("right", nil); e == nil || e.Code != smtp.CodeRecipientRejected || !report.Connected {
		t.Errorf("report %+v, %v", report, e)
	}
	_, e = test("********", func(q *mailer.TestRequest) { q.Config.Host, q.ToEmail = "", "nonsense" })
	if e == nil || e.Code != catalog.CodeValidation || len(e.Problems) != 3 {
		t.Errorf("three fields are bad: %+v", e)
	}
	if _, total, _ := r.ledger.MailLogs(projectID("acme"), catalog.MailQuery{Page: 1, Limit: 10}); total != 0 {
		t.Error("a test is in the log")
	}
}

// TestSMTPTestEndsInTime has a server that reads the message and then stays silent. A mail would wait ten minutes for
// the reply; a test has a person waiting, and ends at its limit.
func TestSMTPTestEndsInTime(t *testing.T) {
	t.Parallel()
	peer := newMute(t, ".")
	r := newRig(t)
	type result struct {
		report mailer.TestReport
		err    error
	}
	ended := make(chan result, 1)
	go func() {
		report, err := r.TestSMTP(t.Context(), mailer.TestRequest{
			Config:  catalog.SMTPConfig{Host: "127.0.0.1", Port: peer.Port(), FromEmail: "hello@acme.example"},
			ToEmail: "me@acme.example",
		})
		ended <- result{report, err}
	}()
	testrig.Eventually(t, "the message is there", func() bool { return peer.got("\r\n.\r\n") })
	r.clock.forward(15 * time.Second)
	got := <-ended
	var e *catalog.Error
	if !errors.As(got.err, &e) || e.Code != smtp.CodeOutcomeUnknown || !got.report.Connected || got.report.MailSent {
		t.Errorf("report %+v, %v", got.report, got.err)
	}
}

// TestSMTPTestNamesTheStage has a server that goes silent at each stage: the test ends within 15 s, whatever
// --mail-budget is, and its message names the stage.
func TestSMTPTestNamesTheStage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		stage  string
		at     string // see mute
		seen   string // of what the client has sent, before the time is over; "" for nothing
		change func(*catalog.SMTPConfig)
		code   catalog.Code
	}{
		{"greeting", "", "", nil, smtp.CodeGreetingTimeout},
		{"ehlo", "EHLO", "EHLO", nil, smtp.CodeConnectionLost},
		{"tls", "", "\x16", func(s *catalog.SMTPConfig) { s.SSLEnabled = true }, smtp.CodeTLSHandshake},
		{"starttls", "STARTTLS", "STARTTLS", func(s *catalog.SMTPConfig) { s.TLSEnabled = true }, smtp.CodeTLSHandshake},
		{"auth", "AUTH", "AUTH", func(s *catalog.SMTPConfig) { s.Username = "hello@acme.example" }, smtp.CodeConnectionLost},
		{"mail", "MAIL", "MAIL", nil, smtp.CodeConnectionLost},
		{"rcpt", "RCPT", "RCPT", nil, smtp.CodeConnectionLost},
		{"data", "DATA", "DATA", nil, smtp.CodeConnectionLost},
		{"eod", ".", "\r\n.\r\n", nil, smtp.CodeOutcomeUnknown},
	} {
		t.Run(c.stage, func(t *testing.T) {
			peer := newMute(t, c.at)
			r := newRig(t)
			r.options.Budget = time.Minute
			r.start(r.resolver)
			q := mailer.TestRequest{Config: catalog.SMTPConfig{Host: "127.0.0.1", Port: peer.Port(), FromEmail: "hello@acme.example"}, ToEmail: "me@acme.example"}
			if c.change != nil {
				c.change(&q.Config)
			}
			if q.Config.Username != "" {
				q.Config.Password = catalog.Secret{Source: catalog.SecretPlain, Ref: "sentinel-Hunter2-pass"}
			}
			ended := make(chan error, 1)
			go func() {
				_, err := r.TestSMTP(t.Context(), q)
				ended <- err
			}()
			testrig.Eventually(t, "the server is silent", func() bool {
				return peer.got(c.seen) && (c.stage != "greeting" || strings.Contains(stacks(), "(*attempt).greeting"))
			})
			r.clock.forward(15 * time.Second)
			var err error
			select {
			case err = <-ended:
			case <-time.After(testrig.Patience):
				t.Fatal("the test goes on after 15 s")
			}
			var e *catalog.Error
			if !errors.As(err, &e) || e.Code != c.code || !strings.Contains(e.Message, `stage "`+c.stage+`" did not end`) {
				t.Errorf("%v, want %s and the stage", err, c.code)
			}
		})
	}
}
