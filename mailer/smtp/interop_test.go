package smtp_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/mailer/smtp"
	"fingerpost/resolver/catalog"
)

// expect sends a mail and compares the outcome.
func expect(t *testing.T, tr *smtp.Transport, s smtp.Server, env smtp.Envelope, message []byte, want row) {
	t.Helper()
	out := tr.Send(t.Context(), s, env, message)
	if out.Class != want.class || out.Stage != want.stage || out.Code != want.code || want.smtp != 0 && out.SMTPCode != want.smtp {
		t.Errorf("%s: %+v", want.name, out)
	}
	if s := dump(out); strings.Contains(s, "Hunter2") {
		t.Errorf("%s: %s", want.name, s)
	}
}

// TestPostfix: STARTTLS and TLS, all ways to log in, and each refusal that it knows, against the real one.
func TestPostfix(t *testing.T) {
	t.Parallel()
	testrig.Thorough(t)
	if testing.Short() {
		t.Skip("left out with -short: it takes seconds")
	}
	r := newPostfix(t)
	for mechanism, port := range r.only {
		t.Run(mechanism, func(t *testing.T) {
			s := r.at(port)
			withLogin(&s)
			before := len(r.mails())
			tr := newTestTransport(t, smtp.TransportOptions{})
			for range 2 {
				expect(t, tr, s, testEnvelope, testMessage, row{name: mechanism, stage: smtp.StageEOD, smtp: 250})
			}
			s.Password = "wrong"
			expect(t, tr, s, testEnvelope, testMessage, row{name: "wrong password", class: smtp.BadConfig, stage: smtp.StageAuth, code: smtp.CodeAuthFailed, smtp: 535})
			testrig.Eventually(t, "both mails", func() bool { return len(r.mails()) == before+2 })
		})
	}
	for _, m := range r.mails() {
		if !strings.HasSuffix(m, "\n\nHello.\n.dot\n..dots\n") || !strings.Contains(m, "with ESMTPSA") { // UTF8SMTPSA with parameters
			t.Errorf("%q", m)
		}
	}
	tr := newTestTransport(t, smtp.TransportOptions{})
	to := func(from, to string) smtp.Envelope { return smtp.Envelope{From: from, To: to} }
	clear, secure, implicit := r.at(r.clear), r.at(r.starttls), r.at(r.implicit)
	withLogin(&secure)
	account := implicit
	withLogin(&account)
	const ann, hello = "ann@peer.example", "hello@acme.example"

	expect(t, tr, clear, testEnvelope, testMessage, row{name: "clear text", stage: smtp.StageEOD, smtp: 250})
	expect(t, tr, secure, testEnvelope, testMessage, row{name: "STARTTLS", stage: smtp.StageEOD, smtp: 250})
	expect(t, tr, account, testEnvelope, testMessage, row{name: "implicit TLS", stage: smtp.StageEOD, smtp: 250})
	expect(t, tr, clear, to(hello, "grey@peer.example"), testMessage, row{name: "Greylist 450", class: smtp.Temporary, stage: smtp.StageRcpt, code: smtp.CodeTemporary, smtp: 450})
	if out := tr.Send(t.Context(), clear, to(hello, "grey@peer.example"), testMessage); out.RetryIn != 5*time.Minute || out.Enhanced != "4.2.0" {
		t.Errorf("%+v", out)
	}
	expect(t, tr, clear, to(hello, "bob@peer.example"), testMessage, row{name: "550 recipient", class: smtp.Permanent, stage: smtp.StageRcpt, code: smtp.CodeRecipientRejected, smtp: 550})
	for recipient, gone := range map[string]bool{"bob@peer.example": true, "grey@peer.example": false, "x@elsewhere.example": false} {
		if out := tr.Send(t.Context(), clear, to(hello, recipient), testMessage); out.NoRecipient != gone {
			t.Errorf("%s: %+v", recipient, out)
		}
	}
	expect(t, tr, clear, to("forged@acme.example", ann), testMessage, row{name: "Sender rejected, at RCPT", class: smtp.BadConfig, stage: smtp.StageRcpt, code: smtp.CodeAuthRequired, smtp: 553})
	expect(t, tr, clear, to(hello, "x@elsewhere.example"), testMessage, row{name: "Relay denied, anonymous", class: smtp.BadConfig, stage: smtp.StageRcpt, code: smtp.CodeAuthRequired, smtp: 554})
	expect(t, tr, implicit, testEnvelope, testMessage, row{name: "554 Client host rejected", class: smtp.BadConfig, stage: smtp.StageRcpt, code: smtp.CodeAuthRequired, smtp: 554})
	expect(t, tr, secure, testEnvelope, []byte(strings.Repeat("0123456789\r\n", 3000)), row{name: "larger than SIZE", class: smtp.Permanent, stage: smtp.StageMail, code: smtp.CodeMessageTooLarge})

	plain := r.at(r.starttls)
	plain.TLS = false
	expect(t, tr, plain, testEnvelope, testMessage, row{name: "530", class: smtp.BadConfig, stage: smtp.StageMail, code: smtp.CodeAuthRequired, smtp: 530})
	noTLS := clear
	noTLS.SSL = true
	expect(t, tr, noTLS, testEnvelope, testMessage, row{name: "TLS spoken to a plaintext port", class: smtp.Permanent, stage: smtp.StageTLS, code: smtp.CodeTLSNotSupported})
	lonely := clear
	withLogin(&lonely)
	expect(t, tr, lonely, testEnvelope, testMessage, row{name: "AUTH not offered", class: smtp.Permanent, stage: smtp.StageAuth, code: smtp.CodeAuthUnsupported})
	stranger := secure
	stranger.CA = newTestCA(t).pem
	expect(t, tr, stranger, testEnvelope, testMessage, row{name: "Unknown CA", class: smtp.Permanent, stage: smtp.StageSTARTTLS, code: smtp.CodeTLSCertificate})
	stranger.CA, stranger.Host = secure.CA, "localhost"
	expect(t, tr, stranger, testEnvelope, testMessage, row{name: "Wrong name", class: smtp.Permanent, stage: smtp.StageSTARTTLS, code: smtp.CodeTLSCertificate})

	impatient := newTestTransport(t, smtp.TransportOptions{Limits: smtp.Limits{Greeting: short}})
	mute := implicit
	mute.SSL = false
	expect(t, impatient, mute, testEnvelope, testMessage, row{name: "plaintext spoken to a TLS port", class: smtp.Temporary, stage: smtp.StageGreeting, code: smtp.CodeGreetingTimeout})
}

// TestSink: Postfix's own sink, with the faults that it can simulate.
func TestSink(t *testing.T) {
	t.Parallel()
	sink := testrig.Need(t, "smtp-sink")[0]
	const temp, perm = smtp.Temporary, smtp.Permanent
	for _, c := range []struct {
		flags string
		row
	}{
		{"", row{stage: smtp.StageEOD, smtp: 250}},
		{"-r CONNECT", row{class: temp, stage: smtp.StageGreeting, code: smtp.CodeServiceUnavailable, smtp: 450}},
		{"-f CONNECT", row{class: perm, stage: smtp.StageGreeting, code: smtp.CodeRejected, smtp: 500}},
		{"-q CONNECT", row{class: temp, stage: smtp.StageGreeting, code: smtp.CodeConnectionClosed}},
		{"-r MAIL", row{class: temp, stage: smtp.StageMail, code: smtp.CodeTemporary, smtp: 450}},
		{"-q MAIL", row{class: temp, stage: smtp.StageMail, code: smtp.CodeConnectionLost}},
		{"-r RCPT", row{class: temp, stage: smtp.StageRcpt, code: smtp.CodeTemporary, smtp: 450}},
		{"-q RCPT", row{class: temp, stage: smtp.StageRcpt, code: smtp.CodeConnectionLost}},
		{"-r DATA", row{class: temp, stage: smtp.StageData, code: smtp.CodeTemporary, smtp: 450}},
		{"-f DATA", row{class: perm, stage: smtp.StageData, code: smtp.CodeMessageRejected, smtp: 500}},
		{"-q DATA", row{class: temp, stage: smtp.StageData, code: smtp.CodeConnectionLost}},
		{"-r .", row{class: temp, stage: smtp.StageEOD, code: smtp.CodeTemporary, smtp: 450}},
		{"-f .", row{class: perm, stage: smtp.StageEOD, code: smtp.CodeMessageRejected, smtp: 500}},
		{"-q .", row{class: smtp.Uncertain, stage: smtp.StageEOD, code: smtp.CodeOutcomeUnknown}},
		{"-q QUIT", row{stage: smtp.StageEOD, smtp: 250}},
	} {
		t.Run(c.flags, func(t *testing.T) {
			port := testrig.FreePort(t)
			args := strings.Fields(c.flags)
			if os.Geteuid() == 0 {
				args = append(args, "-u", "nobody")
			}
			args = append(args, fmt.Sprintf("127.0.0.1:%d", port), "100")
			start(t, exec.Command(sink, args...), port)
			tr := newTestTransport(t, smtp.TransportOptions{})
			c.name = "smtp-sink " + c.flags
			s := smtp.Server{Host: "127.0.0.1", Port: port}
			for range 2 {
				expect(t, tr, s, testEnvelope, testMessage, c.row)
			}
		})
	}
}

// TestExim: a second server, with other texts and codes for the same cases.
func TestExim(t *testing.T) {
	t.Parallel()
	testrig.Thorough(t)
	if testing.Short() {
		t.Skip("left out with -short: it takes seconds")
	}
	r := newExim(t)
	tr := newTestTransport(t, smtp.TransportOptions{})
	for _, port := range []int{r.starttls, r.implicit} {
		s := r.at(port)
		withLogin(&s)
		for range 2 {
			expect(t, tr, s, testEnvelope, testMessage, row{name: "login", stage: smtp.StageEOD, smtp: 250})
		}
		s.Password = "wrong"
		expect(t, tr, s, testEnvelope, testMessage, row{name: "535", class: smtp.BadConfig, stage: smtp.StageAuth, code: smtp.CodeAuthFailed, smtp: 535})
	}
	for _, c := range []struct {
		name, to string
		class    smtp.Class
		stage    smtp.Stage
		code     catalog.Code
		smtp     int
	}{
		{"clear text", "ann@peer.example", smtp.Accepted, smtp.StageEOD, "", 250},
		{"Relay denied (Exim)", "x@elsewhere.example", smtp.BadConfig, smtp.StageRcpt, smtp.CodeRelayDenied, 550},
		{"Greylist 451", "grey@peer.example", smtp.Temporary, smtp.StageRcpt, smtp.CodeTemporary, 451},
	} {
		env := smtp.Envelope{From: testEnvelope.From, To: c.to}
		expect(t, tr, r.at(r.clear), env, testMessage, row{name: c.name, class: c.class, stage: c.stage, code: c.code, smtp: c.smtp})
	}
	expect(t, tr, r.at(r.clear), testEnvelope, []byte(strings.Repeat("0123456789\r\n", 3000)), row{name: "larger than SIZE", class: smtp.Permanent, stage: smtp.StageMail, code: smtp.CodeMessageTooLarge})
	testrig.Eventually(t, "five mails", func() bool { return len(r.mails()) == 5 })
	for _, m := range r.mails() {
		if !strings.HasSuffix(m, "\nHello.\n.dot\n..dots\n") {
			t.Errorf("%q", m)
		}
	}
}
