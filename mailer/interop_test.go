package mailer_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"fingerpost/mailer"
	"fingerpost/resolver/catalog"
)

// expect sends a mail and compares what came of it.
func expect(t *testing.T, tr *mailer.Transport, s mailer.Server, env mailer.Envelope, message []byte, want row) {
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
	r := newPostfix(t)
	for mechanism, port := range r.only {
		t.Run(mechanism, func(t *testing.T) {
			s := r.at(port)
			withLogin(&s)
			before := len(r.mails())
			tr := newTestTransport(t, mailer.TransportOptions{})
			for range 2 {
				expect(t, tr, s, testEnvelope, testMessage, row{name: mechanism, stage: mailer.StageEOD, smtp: 250})
			}
			s.Password = "wrong"
			expect(t, tr, s, testEnvelope, testMessage, row{name: "wrong password", class: mailer.BadConfig, stage: mailer.StageAuth, code: mailer.CodeAuthFailed, smtp: 535})
			eventually(t, "both mails", func() bool { return len(r.mails()) == before+2 })
		})
	}
	for _, m := range r.mails() {
		if !strings.HasSuffix(m, "\n\nHello.\n.dot\n..dots\n") || !strings.Contains(m, "with ESMTPSA") { // UTF8SMTPSA with parameters
			t.Errorf("%q", m)
		}
	}
	tr := newTestTransport(t, mailer.TransportOptions{})
	to := func(from, to string) mailer.Envelope { return mailer.Envelope{From: from, To: to} }
	clear, secure, implicit := r.at(r.clear), r.at(r.starttls), r.at(r.implicit)
	withLogin(&secure)
	account := implicit
	withLogin(&account)
	const ann, hello = "ann@peer.example", "hello@acme.example"

	expect(t, tr, clear, testEnvelope, testMessage, row{name: "clear text", stage: mailer.StageEOD, smtp: 250})
	expect(t, tr, secure, testEnvelope, testMessage, row{name: "STARTTLS", stage: mailer.StageEOD, smtp: 250})
	expect(t, tr, account, testEnvelope, testMessage, row{name: "implicit TLS", stage: mailer.StageEOD, smtp: 250})
	expect(t, tr, clear, to(hello, "grey@peer.example"), testMessage, row{name: "Greylist 450", class: mailer.Temporary, stage: mailer.StageRcpt, code: mailer.CodeTemporary, smtp: 450})
	if out := tr.Send(t.Context(), clear, to(hello, "grey@peer.example"), testMessage); out.RetryIn != 5*time.Minute || out.Enhanced != "4.2.0" {
		t.Errorf("%+v", out)
	}
	expect(t, tr, clear, to(hello, "bob@peer.example"), testMessage, row{name: "550 recipient", class: mailer.Permanent, stage: mailer.StageRcpt, code: mailer.CodeRecipientRejected, smtp: 550})
	expect(t, tr, clear, to("forged@acme.example", ann), testMessage, row{name: "Sender rejected, at RCPT", class: mailer.BadConfig, stage: mailer.StageRcpt, code: mailer.CodeAuthRequired, smtp: 553})
	expect(t, tr, clear, to(hello, "x@elsewhere.example"), testMessage, row{name: "Relay denied, anonymous", class: mailer.BadConfig, stage: mailer.StageRcpt, code: mailer.CodeAuthRequired, smtp: 554})
	expect(t, tr, implicit, testEnvelope, testMessage, row{name: "554 Client host rejected", class: mailer.BadConfig, stage: mailer.StageRcpt, code: mailer.CodeAuthRequired, smtp: 554})
	expect(t, tr, secure, testEnvelope, []byte(strings.Repeat("0123456789\r\n", 3000)), row{name: "larger than SIZE", class: mailer.Permanent, stage: mailer.StageMail, code: mailer.CodeMessageTooLarge})

	plain := r.at(r.starttls)
	plain.TLS = false
	expect(t, tr, plain, testEnvelope, testMessage, row{name: "530", class: mailer.BadConfig, stage: mailer.StageMail, code: mailer.CodeAuthRequired, smtp: 530})
	noTLS := clear
	noTLS.SSL = true
	expect(t, tr, noTLS, testEnvelope, testMessage, row{name: "TLS spoken to a plaintext port", class: mailer.Permanent, stage: mailer.StageTLS, code: mailer.CodeTLSNotSupported})
	lonely := clear
	withLogin(&lonely)
	expect(t, tr, lonely, testEnvelope, testMessage, row{name: "AUTH not offered", class: mailer.Permanent, stage: mailer.StageAuth, code: mailer.CodeAuthUnsupported})
	stranger := secure
	stranger.CA = newTestCA(t).pem
	expect(t, tr, stranger, testEnvelope, testMessage, row{name: "Unknown CA", class: mailer.Permanent, stage: mailer.StageSTARTTLS, code: mailer.CodeTLSCertificate})
	stranger.CA, stranger.Host = secure.CA, "localhost"
	expect(t, tr, stranger, testEnvelope, testMessage, row{name: "Wrong name", class: mailer.Permanent, stage: mailer.StageSTARTTLS, code: mailer.CodeTLSCertificate})

	impatient := newTestTransport(t, mailer.TransportOptions{Limits: mailer.Limits{Greeting: short}})
	mute := implicit
	mute.SSL = false
	expect(t, impatient, mute, testEnvelope, testMessage, row{name: "plaintext spoken to a TLS port", class: mailer.Temporary, stage: mailer.StageGreeting, code: mailer.CodeGreetingTimeout})
}

// TestSink: Postfix's own sink, with the faults that it can play.
func TestSink(t *testing.T) {
	sink := needTools(t, "smtp-sink")[0]
	const temp, perm = mailer.Temporary, mailer.Permanent
	for _, c := range []struct {
		flags string
		row
	}{
		{"", row{stage: mailer.StageEOD, smtp: 250}},
		{"-r CONNECT", row{class: temp, stage: mailer.StageGreeting, code: mailer.CodeServiceUnavailable, smtp: 450}},
		{"-f CONNECT", row{class: perm, stage: mailer.StageGreeting, code: mailer.CodeRejected, smtp: 500}},
		{"-q CONNECT", row{class: temp, stage: mailer.StageGreeting, code: mailer.CodeConnectionClosed}},
		{"-r MAIL", row{class: temp, stage: mailer.StageMail, code: mailer.CodeTemporary, smtp: 450}},
		{"-q MAIL", row{class: temp, stage: mailer.StageMail, code: mailer.CodeConnectionLost}},
		{"-r RCPT", row{class: temp, stage: mailer.StageRcpt, code: mailer.CodeTemporary, smtp: 450}},
		{"-q RCPT", row{class: temp, stage: mailer.StageRcpt, code: mailer.CodeConnectionLost}},
		{"-r DATA", row{class: temp, stage: mailer.StageData, code: mailer.CodeTemporary, smtp: 450}},
		{"-f DATA", row{class: perm, stage: mailer.StageData, code: mailer.CodeMessageRejected, smtp: 500}},
		{"-q DATA", row{class: temp, stage: mailer.StageData, code: mailer.CodeConnectionLost}},
		{"-r .", row{class: temp, stage: mailer.StageEOD, code: mailer.CodeTemporary, smtp: 450}},
		{"-f .", row{class: perm, stage: mailer.StageEOD, code: mailer.CodeMessageRejected, smtp: 500}},
		{"-q .", row{class: mailer.Uncertain, stage: mailer.StageEOD, code: mailer.CodeOutcomeUnknown}},
		{"-q QUIT", row{stage: mailer.StageEOD, smtp: 250}},
	} {
		t.Run(c.flags, func(t *testing.T) {
			port := freePort(t)
			args := strings.Fields(c.flags)
			if os.Geteuid() == 0 {
				args = append(args, "-u", "nobody")
			}
			args = append(args, fmt.Sprintf("127.0.0.1:%d", port), "100")
			start(t, exec.Command(sink, args...), port)
			tr := newTestTransport(t, mailer.TransportOptions{})
			c.name = "smtp-sink " + c.flags
			s := mailer.Server{Host: "127.0.0.1", Port: port}
			for range 2 {
				expect(t, tr, s, testEnvelope, testMessage, c.row)
			}
		})
	}
}

// TestExim: a second opinion, with other texts and codes for the same things.
func TestExim(t *testing.T) {
	r := newExim(t)
	tr := newTestTransport(t, mailer.TransportOptions{})
	for _, port := range []int{r.starttls, r.implicit} {
		s := r.at(port)
		withLogin(&s)
		for range 2 {
			expect(t, tr, s, testEnvelope, testMessage, row{name: "login", stage: mailer.StageEOD, smtp: 250})
		}
		s.Password = "wrong"
		expect(t, tr, s, testEnvelope, testMessage, row{name: "535", class: mailer.BadConfig, stage: mailer.StageAuth, code: mailer.CodeAuthFailed, smtp: 535})
	}
	for _, c := range []struct {
		name, to string
		class    mailer.Class
		stage    mailer.Stage
		code     catalog.Code
		smtp     int
	}{
		{"clear text", "ann@peer.example", mailer.Accepted, mailer.StageEOD, "", 250},
		{"Relay denied (Exim)", "x@elsewhere.example", mailer.BadConfig, mailer.StageRcpt, mailer.CodeRelayDenied, 550},
		{"Greylist 451", "grey@peer.example", mailer.Temporary, mailer.StageRcpt, mailer.CodeTemporary, 451},
	} {
		env := mailer.Envelope{From: testEnvelope.From, To: c.to}
		expect(t, tr, r.at(r.clear), env, testMessage, row{name: c.name, class: c.class, stage: c.stage, code: c.code, smtp: c.smtp})
	}
	expect(t, tr, r.at(r.clear), testEnvelope, []byte(strings.Repeat("0123456789\r\n", 3000)), row{name: "larger than SIZE", class: mailer.Permanent, stage: mailer.StageMail, code: mailer.CodeMessageTooLarge})
	eventually(t, "five mails", func() bool { return len(r.mails()) == 5 })
	for _, m := range r.mails() {
		if !strings.HasSuffix(m, "\nHello.\n.dot\n..dots\n") {
			t.Errorf("%q", m)
		}
	}
}
