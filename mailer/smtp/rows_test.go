package smtp_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/mailer/smtp"
	"fingerpost/resolver/catalog"
)

// A row is a row of the table of failures, or a case of one, and its outcome.
type row struct {
	name   string // the column "Situation"
	script []turn // of the server
	server func(*smtp.Server)
	limits smtp.Limits
	size   int // of the message, if not small

	class  smtp.Class
	stage  smtp.Stage
	code   catalog.Code
	fields string // of the problems
	smtp   int
	says   string // the message holds it
	hint   string // the problems hold it
	reply  string
}

// short is a limit that the case exceeds, and that is long enough for the steps before.
const short = 400 * time.Millisecond

func withLogin(s *smtp.Server) { s.Username, s.Password = testUser, testPassword }
func withTLS(s *smtp.Server)   { s.TLS = true }
func withSSL(s *smtp.Server)   { s.SSL = true }

// mailReply, rcptReply, dataReply and dotReply are scripts that answer a command with a reply.
func mailReply(reply string) []turn { return script(greet, "MAIL -> "+reply, silence) }
func rcptReply(reply string) []turn {
	return script(greet, "MAIL -> 250 ok", "RCPT -> "+reply, silence)
}
func dataReply(reply string) []turn {
	return script(greet, "MAIL -> 250 ok", "RCPT -> 250 ok", "DATA -> "+reply, silence)
}
func dotReply(reply string) []turn  { return script(greet, envelope, message, reply, silence) }
func authReply(reply string) []turn { return script(greetLogin, "AUTH PLAIN -> "+reply, silence) }

func rowsBeforeMail() []row {
	const (
		temp, perm, config = smtp.Temporary, smtp.Permanent, smtp.BadConfig
		dial, greeting     = smtp.StageDial, smtp.StageGreeting
		inTLS, starttls    = smtp.StageTLS, smtp.StageSTARTTLS
		auth               = smtp.StageAuth
	)
	return []row{
		{name: "Accepts, silent", script: script(silence), limits: smtp.Limits{Greeting: short},
			class: temp, stage: greeting, code: smtp.CodeGreetingTimeout, fields: "sslEnabled"},
		{name: "Accepts, silent; or plaintext spoken to a TLS port", script: script(secure), limits: smtp.Limits{Greeting: short},
			class: temp, stage: greeting, code: smtp.CodeGreetingTimeout, fields: "sslEnabled", hint: "enable sslEnabled"},
		{name: "Closed before greeting", script: script(hangUp),
			class: temp, stage: greeting, code: smtp.CodeConnectionClosed, fields: "port"},
		{name: "Closed before greeting: reset", script: script(reset), // which may come with the connection
			class: temp, code: smtp.CodeConnectionClosed, fields: "port"},
		{name: "Not SMTP (HTTP etc.)", script: script("HTTP/1.1 400 Bad Request|Server: sentinel-banner|", silence),
			class: perm, stage: greeting, code: smtp.CodeProtocolError, fields: "port"},
		{name: "Not SMTP: a code that does not greet", script: script("250 sentinel-banner", silence),
			class: perm, stage: greeting, code: smtp.CodeProtocolError, fields: "port"},
		{name: "421 greeting", script: script("421 sentinel-banner", silence),
			class: temp, stage: greeting, code: smtp.CodeServiceUnavailable, fields: "host", smtp: 421},
		{name: "554 greeting", script: script("554 sentinel-banner", silence),
			class: perm, stage: greeting, code: smtp.CodeRejected, fields: "host", smtp: 554},
		{name: "554 at EHLO", script: script("220 hi", "EHLO -> 554 sentinel-banner", silence),
			class: perm, stage: smtp.StageEHLO, code: smtp.CodeRejected, fields: "host", smtp: 554},
		{name: "550 to EHLO", script: script("220 hi", "EHLO -> 550 5.7.1 Helo command rejected", "HELO -> 550 5.7.1 the same", silence),
			class: config, stage: smtp.StageEHLO, code: smtp.CodeHELORefused, fields: "ehloName", smtp: 550, hint: "ehlo_name"},
		{name: "504 to EHLO", script: script("220 hi", "EHLO -> 504 sentinel-banner", "HELO -> 504 sentinel-banner", silence),
			class: config, stage: smtp.StageEHLO, code: smtp.CodeHELORefused, fields: "ehloName", smtp: 504},
		{name: "501 to EHLO", script: script("220 hi", "EHLO -> 501 sentinel-banner", "HELO -> 501 sentinel-banner", silence),
			class: config, stage: smtp.StageEHLO, code: smtp.CodeHELORefused, fields: "ehloName", smtp: 501},
		{name: "Helo command rejected at RCPT", script: rcptReply("504 5.5.2 <x>: Helo command rejected: need fully-qualified hostname"),
			class: config, stage: smtp.StageRcpt, code: smtp.CodeHELORefused, fields: "ehloName", smtp: 504, hint: "--mail-ehlo",
			reply: "<x>: Helo command rejected: need fully-qualified hostname"},
		{name: "Helo command rejected at RCPT, 5.7.1", script: rcptReply("550 5.7.1 <x>: Helo command rejected: Access denied"),
			class: config, stage: smtp.StageRcpt, code: smtp.CodeHELORefused, fields: "ehloName", smtp: 550,
			reply: "<x>: Helo command rejected: Access denied"},
		{name: "HELO refused at MAIL", script: mailReply("550 invalid EHLO name"), class: config, stage: smtp.StageMail,
			code: smtp.CodeHELORefused, fields: "ehloName", smtp: 550, reply: "invalid EHLO name"},
		{name: "HELO refused for now", script: rcptReply("450 4.7.1 <x>: Helo command rejected: Host not found"), class: temp,
			stage: smtp.StageRcpt, code: smtp.CodeTemporary, smtp: 450, reply: "<x>: Helo command rejected: Host not found"},
		{name: "421 at EHLO", script: script("220 hi", "EHLO -> 421 sentinel-banner", silence),
			class: temp, stage: smtp.StageEHLO, code: smtp.CodeServiceUnavailable, fields: "host", smtp: 421},
		{name: "Reply flood: greeting", script: script(flood("220-sentinel-banner\r\n")),
			class: perm, stage: greeting, code: smtp.CodeProtocolError, fields: "host"},
		{name: "Reply flood: one line", script: script(flood("220-sentinel-banner ")),
			class: perm, stage: greeting, code: smtp.CodeProtocolError, fields: "host"},
		{name: "Reply flood: EHLO", script: script("220 hi", hear("EHLO"), flood("250-KEYWORD\r\n")),
			class: perm, stage: smtp.StageEHLO, code: smtp.CodeProtocolError, fields: "host"},
		{name: "Reply flood: too many lines", script: script("220 hi", hear("EHLO"), strings.Repeat("250-X|", 200)+"250 X", silence),
			class: perm, stage: smtp.StageEHLO, code: smtp.CodeProtocolError, fields: "host"},
		{name: "Reply flood: over a session", class: perm, stage: smtp.StageMail, code: smtp.CodeProtocolError, fields: "host",
			script: script("220 hi", "EHLO -> "+strings.Repeat("250-"+strings.Repeat("x", 4000)+"|", 190)+"250 X",
				"MAIL -> "+strings.Repeat("250-"+strings.Repeat("x", 4000)+"|", 190)+"250 X", silence)},
		{name: "Reply flood: AUTH", script: script(greetLogin, hear("AUTH"), flood("235-x\r\n")), server: withLogin,
			class: perm, stage: auth, code: smtp.CodeProtocolError, fields: "host"},

		{name: "TLS spoken to a plaintext port", script: script(greet, silence), server: withSSL,
			class: perm, stage: inTLS, code: smtp.CodeTLSNotSupported, fields: "sslEnabled", hint: "use tlsEnabled (STARTTLS)"},
		{name: "Silent to TLS", script: script(silence), server: withSSL, limits: smtp.Limits{TLS: short},
			class: temp, stage: inTLS, code: smtp.CodeTLSHandshake, fields: "tlsEnabled"},
		{name: "Closes on TLS", script: script(part, hangUp), server: withSSL,
			class: temp, stage: inTLS, code: smtp.CodeTLSHandshake, fields: "tlsEnabled"},
		{name: "STARTTLS required, not offered", script: script(greet, silence), server: withTLS,
			class: perm, stage: starttls, code: smtp.CodeSTARTTLSUnavailable, fields: "tlsEnabled"},
		{name: "STARTTLS required, and only HELO known", script: script("220 hi", "EHLO -> 502 what", "HELO -> 250 hi", silence),
			server: withTLS, class: perm, stage: starttls, code: smtp.CodeSTARTTLSUnavailable, fields: "tlsEnabled"},
		{name: "STARTTLS 454", script: script(greetTLS, "STARTTLS -> 454 sentinel-banner", silence), server: withTLS,
			class: temp, stage: starttls, code: smtp.CodeTLSHandshake, fields: "tlsEnabled", smtp: 454},
		{name: "STARTTLS 502", script: script(greetTLS, "STARTTLS -> 502 sentinel-banner", silence), server: withTLS,
			class: perm, stage: starttls, code: smtp.CodeSTARTTLSUnavailable, fields: "tlsEnabled", smtp: 502},
		{name: "STARTTLS with more behind it", script: script(greetTLS, "STARTTLS -> 220 go|250 sentinel-banner", secure, silence),
			server: withTLS, class: perm, stage: starttls, code: smtp.CodeProtocolError, fields: "port"},

		{name: "AUTH not offered", script: script(greet, silence), server: withLogin,
			class: perm, stage: auth, code: smtp.CodeAuthUnsupported, fields: "username"},
		{name: "Mechanism not offered", script: script("220 hi", "EHLO -> 250-hi|250 AUTH GSSAPI XOAUTH2", silence), server: withLogin,
			class: perm, stage: auth, code: smtp.CodeAuthUnsupported, fields: "username"},
		{name: "Mechanism offered and not known", script: authReply("504 5.7.4 no"), server: withLogin,
			class: perm, stage: auth, code: smtp.CodeAuthUnsupported, fields: "username", smtp: 504, reply: "no"},
		{name: "535", script: authReply("535 5.7.8 Error: authentication failed"), server: withLogin, class: config, stage: auth,
			code: smtp.CodeAuthFailed, fields: "username,password", smtp: 535, reply: "Error: authentication failed",
			says: "Authentication failed: the SMTP server rejected the username or password (535)"},
		{name: "534", script: authReply("534 5.7.9 stronger"), server: withLogin, class: config, stage: auth,
			code: smtp.CodeAuthFailed, fields: "username,password", smtp: 534, reply: "stronger", says: "(534)"},
		{name: "538", script: authReply("538 encrypt"), server: withLogin, class: config, stage: auth,
			code: smtp.CodeAuthFailed, fields: "username,password", smtp: 538, reply: "encrypt", says: "(538)"},
		{name: "530 at AUTH", script: authReply("530 5.7.0 no"), server: withLogin, class: config, stage: auth,
			code: smtp.CodeAuthFailed, fields: "username,password", smtp: 530, reply: "no"},
		{name: "535 5.7.139", script: authReply("535 5.7.139 Authentication unsuccessful, basic authentication is disabled."), server: withLogin,
			class: config, stage: auth, code: smtp.CodeAuthFailed, fields: "auth", smtp: 535, hint: "Microsoft 365 has ended the login with username",
			reply: "Authentication unsuccessful, basic authentication is disabled."},
		{name: "550 5.7.30 at AUTH", script: authReply("550 5.7.30 Basic authentication is not supported for Client Submission."), server: withLogin,
			class: config, stage: auth, code: smtp.CodeAuthFailed, fields: "auth", smtp: 550, hint: "set auth to xoauth2",
			reply: "Basic authentication is not supported for Client Submission."},
		{name: "Pinned mechanism not offered", script: script("220 hi", "EHLO -> 250-hi|250 AUTH PLAIN LOGIN", silence),
			server: func(s *smtp.Server) { withLogin(s); s.Auth = "cram-md5" },
			class:  perm, stage: auth, code: smtp.CodeAuthUnsupported, fields: "auth", says: "CRAM-MD5"},
		{name: "Pinned mechanism", script: script("220 hi", "EHLO -> 250-hi|250 AUTH PLAIN LOGIN", "AUTH LOGIN -> 535 no", silence),
			server: func(s *smtp.Server) { withLogin(s); s.Auth = "login" },
			class:  config, stage: auth, code: smtp.CodeAuthFailed, fields: "username,password", smtp: 535, reply: "no"},
		{name: "454 at AUTH", script: authReply("454 4.7.0 later"), server: withLogin,
			class: temp, stage: auth, code: smtp.CodeAuthTemporary, smtp: 454, reply: "later"},
		{name: "421 at AUTH", script: authReply("421 bye"), server: withLogin,
			class: temp, stage: auth, code: smtp.CodeAuthTemporary, smtp: 421, reply: "bye"},
		{name: "AUTH that asks for ever", script: script(greetLogin, hear("AUTH"), flood("334 VXNlcg==\r\n")), server: withLogin,
			class: perm, stage: auth, code: smtp.CodeProtocolError, fields: "port"},
	}
}

func rowsFromMail() []row {
	const (
		temp, perm, config = smtp.Temporary, smtp.Permanent, smtp.BadConfig
		uncertain          = smtp.Uncertain
		mail, rcpt, data   = smtp.StageMail, smtp.StageRcpt, smtp.StageData
		body, eod          = smtp.StageBody, smtp.StageEOD
	)
	return []row{
		{name: "530 at MAIL", script: mailReply("530 5.7.0 log in"),
			class: config, stage: mail, code: smtp.CodeAuthRequired, fields: "username", smtp: 530, reply: "log in"},
		{name: "530 at MAIL: STARTTLS offered", script: script(greetTLS, "MAIL -> 530 Must issue a STARTTLS command first", silence),
			class: config, stage: mail, code: smtp.CodeAuthRequired, fields: "username,tlsEnabled", smtp: 530, reply: "Must issue a STARTTLS command first"},
		{name: "502 5.7.0 at MAIL", script: mailReply("502 5.7.0 Please authenticate first"),
			class: config, stage: mail, code: smtp.CodeAuthRequired, fields: "username", smtp: 502, reply: "Please authenticate first"},
		{name: "554 Client host rejected at RCPT", script: rcptReply("554 5.7.1 Client host rejected"),
			class: config, stage: rcpt, code: smtp.CodeAuthRequired, fields: "username", smtp: 554, reply: "Client host rejected"},
		{name: "Sender rejected 550", script: mailReply("550 5.1.0 no"),
			class: config, stage: mail, code: smtp.CodeSenderRejected, fields: "fromEmail", smtp: 550, reply: "no"},
		{name: "Sender rejected 553", script: mailReply("553 no"),
			class: config, stage: mail, code: smtp.CodeSenderRejected, fields: "fromEmail", smtp: 553, reply: "no"},
		{name: "Sender rejected 501", script: mailReply("501 no"),
			class: config, stage: mail, code: smtp.CodeSenderRejected, fields: "fromEmail", smtp: 501, reply: "no"},
		{name: "503 at MAIL", script: mailReply("503 no"),
			class: perm, stage: mail, code: smtp.CodeProtocolError, fields: "host", smtp: 503, reply: "no"},
		{name: "552 5.3.4 at MAIL", script: mailReply("552 5.3.4 big"),
			class: perm, stage: mail, code: smtp.CodeMessageTooLarge, smtp: 552, reply: "big"},
		{name: "552 5.3.4 at final dot", script: dotReply("552 5.3.4 big"),
			class: perm, stage: eod, code: smtp.CodeMessageTooLarge, smtp: 552, reply: "big"},
		{name: "552 at final dot", script: dotReply("552 big"),
			class: perm, stage: eod, code: smtp.CodeMessageTooLarge, smtp: 552, reply: "big"},
		{name: "552 5.7.0 at final dot", script: dotReply("552 5.7.0 virus"),
			class: perm, stage: eod, code: smtp.CodeMessageRejected, smtp: 552, reply: "virus"},
		{name: "552 5.3.4: larger than SIZE", script: script(greet, silence), size: 1000001,
			class: perm, stage: mail, code: smtp.CodeMessageTooLarge, says: "the server takes 1000000"},
		{name: "550 recipient", script: rcptReply("550-5.1.1 no|550 5.1.1 such user"),
			class: perm, stage: rcpt, code: smtp.CodeRecipientRejected, fields: "toEmail", smtp: 550, reply: "no such user"},
		{name: "551 recipient", script: rcptReply("551 no"),
			class: perm, stage: rcpt, code: smtp.CodeRecipientRejected, fields: "toEmail", smtp: 551, reply: "no"},
		{name: "553 recipient", script: rcptReply("553 no"),
			class: perm, stage: rcpt, code: smtp.CodeRecipientRejected, fields: "toEmail", smtp: 553, reply: "no"},
		{name: "501 recipient", script: rcptReply("501 no"),
			class: perm, stage: rcpt, code: smtp.CodeRecipientRejected, fields: "toEmail", smtp: 501, reply: "no"},
		{name: "Relay denied (Postfix)", server: withLogin,
			script: script(greetLogin, login, "MAIL -> 250 ok", "RCPT -> 554 5.7.1 Relay access denied", silence),
			class:  config, stage: rcpt, code: smtp.CodeRelayDenied, fields: "username", smtp: 554, reply: "Relay access denied"},
		{name: "Relay denied (Exim)", script: rcptReply("550 relay not permitted"),
			class: config, stage: rcpt, code: smtp.CodeRelayDenied, fields: "username", smtp: 550, reply: "relay not permitted"},
		{name: "Relay denied, in a reply that repeats the password", server: func(s *smtp.Server) { withLogin(s); s.Password = "not permitted" },
			script: script(greetLogin, login, "MAIL -> 250 ok", "RCPT -> 550 relay not permitted", silence),
			class:  config, stage: rcpt, code: smtp.CodeRelayDenied, fields: "username", smtp: 550, reply: "(withheld: it repeats a secret)"},
		{name: "Relay denied, in a long reply", script: rcptReply("550 " + strings.Repeat("no ", 66) + "relay"),
			class: config, stage: rcpt, code: smtp.CodeRelayDenied, fields: "username", smtp: 550, reply: strings.Repeat("no ", 66) + "re"},
		{name: "Relay denied (qmail)", script: rcptReply("553 sorry, no Relaying"),
			class: config, stage: rcpt, code: smtp.CodeRelayDenied, fields: "username", smtp: 553, reply: "sorry, no Relaying"},
		{name: "Relay denied, with the enhanced code that go-smtp adds by itself", script: rcptReply("550 5.0.0 relay not permitted"),
			class: config, stage: rcpt, code: smtp.CodeRelayDenied, fields: "username", smtp: 550, reply: "relay not permitted"},
		{name: "Relay denied (Exchange)", script: script(greetLogin, login, "MAIL -> 250 ok", "RCPT -> 550 5.7.64 TenantAttribution; Relay Access Denied", silence), server: withLogin,
			class: config, stage: rcpt, code: smtp.CodeRelayDenied, fields: "username", smtp: 550, reply: "TenantAttribution; Relay Access Denied"},
		{name: "550 recipient whose text names a relay", script: rcptReply("550 5.1.1 no such user at this relay"),
			class: perm, stage: rcpt, code: smtp.CodeRecipientRejected, fields: "toEmail", smtp: 550, reply: "no such user at this relay"},
		{name: "550 recipient with a name alike", script: rcptReply("550 no relays@host.example here"),
			class: perm, stage: rcpt, code: smtp.CodeRecipientRejected, fields: "toEmail", smtp: 550, reply: "no relays@host.example here"},
		{name: "Greylist 450", script: rcptReply("450 4.2.0 Greylisted"),
			class: temp, stage: rcpt, code: smtp.CodeTemporary, smtp: 450, reply: "Greylisted"},
		{name: "Greylist 451", script: rcptReply("451 Greylisted"),
			class: temp, stage: rcpt, code: smtp.CodeTemporary, smtp: 451, reply: "Greylisted"},
		{name: "Greylist 452", script: rcptReply("452 Greylisted"),
			class: temp, stage: rcpt, code: smtp.CodeTemporary, smtp: 452, reply: "Greylisted"},
		{name: "421 at MAIL", script: mailReply("421 4.3.2 bye"),
			class: temp, stage: mail, code: smtp.CodeTemporary, smtp: 421, reply: "bye"},
		{name: "554 at DATA", script: dataReply("554 5.5.1 no"),
			class: perm, stage: data, code: smtp.CodeMessageRejected, smtp: 554, reply: "no"},
		{name: "451 at DATA", script: dataReply("451 no"),
			class: temp, stage: data, code: smtp.CodeTemporary, smtp: 451, reply: "no"},
		{name: "DATA taken without a go-ahead", script: dataReply("250 queued"),
			class: perm, stage: data, code: smtp.CodeProtocolError, fields: "port"},
		{name: "554 at final dot", script: dotReply("554 5.7.1 spam"),
			class: perm, stage: eod, code: smtp.CodeMessageRejected, smtp: 554, reply: "spam"},
		{name: "451 at final dot", script: dotReply("451 4.3.0 later"),
			class: temp, stage: eod, code: smtp.CodeTemporary, smtp: 451, reply: "later"},
		{name: "Server closes at RCPT", script: script(greet, "MAIL -> 250 ok", hear("RCPT"), hangUp),
			class: temp, stage: rcpt, code: smtp.CodeConnectionLost},
		{name: "Silence at MAIL", script: script(greet, silence), limits: smtp.Limits{Command: short},
			class: temp, stage: mail, code: smtp.CodeConnectionLost},
		{name: "Server closes mid-body: before the dot", script: script(plain, envelope, part, reset), size: 12_000_000,
			class: temp, stage: body, code: smtp.CodeConnectionLost},
		{name: "Server reads no more of the body", script: script(plain, envelope, part, stall), size: 12_000_000, limits: smtp.Limits{Body: short},
			class: temp, stage: body, code: smtp.CodeConnectionLost},
		{name: "Server closes mid-body: small, the dot was out", script: script(greet, envelope, part, reset),
			class: uncertain, stage: eod, code: smtp.CodeConnectionLost},
		{name: "Closes after the dot, no reply", script: script(greet, envelope, message, hangUp),
			class: uncertain, stage: eod, code: smtp.CodeOutcomeUnknown},
		{name: "Closes after the dot, no reply, over TLS", script: script(greetTLS, upgrade, "EHLO -> 250 hi", envelope, message, hangUp), server: withTLS,
			class: uncertain, stage: eod, code: smtp.CodeOutcomeUnknown},
		{name: "Closes after the dot, in the middle of a reply", script: script(greet, envelope, message, "250-2.0.0 queued", hangUp),
			class: uncertain, stage: eod, code: smtp.CodeOutcomeUnknown},
		{name: "Silence after the dot", script: script(greet, envelope, message, silence), limits: smtp.Limits{Dot: short},
			class: uncertain, stage: eod, code: smtp.CodeOutcomeUnknown},
		{name: "Reply flood: final dot", script: script(greet, envelope, message, flood("250-x\r\n")),
			class: uncertain, stage: eod, code: smtp.CodeProtocolError, fields: "host"},
		{name: "Nonsense after the dot", script: script(greet, envelope, message, "sentinel-banner", silence),
			class: uncertain, stage: eod, code: smtp.CodeProtocolError, fields: "port"},
		{name: "QUIT fails after 250: silence", script: script(greet, takes, silence),
			class: smtp.Accepted, stage: eod, smtp: 250, reply: "queued as 4711"},
		{name: "QUIT fails after 250: close", script: script(greet, takes, hangUp),
			class: smtp.Accepted, stage: eod, smtp: 250, reply: "queued as 4711"},
		{name: "QUIT fails after 250: reset", script: script(greet, takes, reset),
			class: smtp.Accepted, stage: eod, smtp: 250, reply: "queued as 4711"},
	}
}

// TestRows: each row of the table against a server that behaves so, and that offers PIPELINING or does not. The rows of
// the look-up, the connection, certificates and credentials in clear have tests of their own.
func TestRows(t *testing.T) {
	t.Parallel()
	ca := newTestCA(t)
	config := ca.server(t, "127.0.0.1", time.Hour)
	for i, r := range append(append(rowsBeforeMail(), rowsFromMail()...), rowsFromMail()...) {
		pipeline := i >= len(rowsBeforeMail())+len(rowsFromMail())
		if pipeline && testing.Short() {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			turns := r.script
			if pipeline {
				turns = script(offerPipelining, turns)
			}
			peer := newScripted(t, config, turns)
			tr := newTestTransport(t, smtp.TransportOptions{Limits: r.limits})
			server := peer.server()
			if server.CA = ca.pem; r.server != nil {
				r.server(&server)
			}
			message := testMessage
			if r.size > 0 {
				message = []byte(strings.Repeat("0123456789012345678901234567890123456789012345678901234567890123456\r\n", r.size/69+1))[:r.size]
			}
			out := tr.SendAlone(t.Context(), server, testEnvelope, message, func(smtp.Step) {})
			r.compare(t, out)
			if s := dump(out); strings.Contains(s, "sentinel") {
				t.Errorf("a sentinel shows up in %s", s)
			}
		})
	}
}

// compare is judge for an attempt that has begun.
func (r row) compare(t *testing.T, out smtp.Outcome) {
	t.Helper()
	if r.judge(t, out); len(out.Took) == 0 {
		t.Error("no steps")
	}
}

func (r row) judge(t *testing.T, out smtp.Outcome) {
	t.Helper()
	var fields, texts []string
	for _, p := range out.Problems {
		fields, texts = append(fields, p.Path), append(texts, p.Message)
	}
	if out.Class != r.class || r.stage != "" && out.Stage != r.stage || out.Code != r.code || strings.Join(fields, ",") != r.fields || out.SMTPCode != r.smtp {
		t.Errorf("class %d at %s: %s, fields %q, reply code %d\nwant class %d at %s: %s, fields %q, reply code %d", out.Class, out.Stage, out.Code,
			strings.Join(fields, ","), out.SMTPCode, r.class, r.stage, r.code, r.fields, r.smtp)
	}
	if out.Reply != r.reply || !strings.Contains(out.Message, r.says) || !strings.Contains(strings.Join(texts, "\n"), r.hint) {
		t.Errorf("reply %q, message %q, problems %q", out.Reply, out.Message, texts)
	}
	if (out.Message == "") != (r.class == smtp.Accepted) {
		t.Errorf("message %q", out.Message)
	}
}

// TestRowsOfConnecting: the rows that end before the server is reached.
func TestRowsOfConnecting(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	dns := newTestDNS(t)
	dns.answer("refusing.example", "127.0.0.1")
	dns.answer("private.example", "10.1.2.3")
	port := testrig.FreePort(t)
	const temp, perm, dial = smtp.Temporary, smtp.Permanent, smtp.StageDial
	for _, r := range []struct {
		row
		host, steps string
	}{
		{row{name: "Unknown host", class: temp, stage: dial, code: smtp.CodeUnknownHost, fields: "host",
			says: "Unknown host: nowhere.example", hint: "UnknownHostException: nowhere.example"}, "nowhere.example", "dns"},
		{row{name: "Unknown host: no host name", class: temp, stage: dial, code: smtp.CodeUnknownHost, fields: "host"}, "no host name", "dns"},
		{row{name: "DNS server failing", class: temp, stage: dial, code: smtp.CodeDNSFailure, fields: "host"}, "failing.example", "dns"},
		{row{name: "DNS server silent", class: temp, stage: dial, code: smtp.CodeDNSFailure, fields: "host",
			limits: smtp.Limits{Connect: short}}, "silent.example", "dns"},
		{row{name: "Refused", class: temp, stage: dial, code: smtp.CodeConnectionRefused, fields: "port"}, "refusing.example", "dns connect"},
		{row{name: "Address blocked by guard", class: perm, stage: dial, code: smtp.CodeAddressNotAllowed, fields: "host"}, "private.example", "dns connect"},
	} {
		t.Run(r.name, func(t *testing.T) {
			tr := newTestTransport(t, smtp.TransportOptions{Resolver: dns.resolver(), Limits: r.limits})
			out := tr.Send(t.Context(), smtp.Server{Host: r.host, Port: port}, testEnvelope, testMessage)
			r.compare(t, out)
			if got := stepNames(out); got != r.steps {
				t.Errorf("took %q, not %q", got, r.steps)
			}
		})
	}
	t.Run("the context ends before", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		out := newTestTransport(t, smtp.TransportOptions{}).Send(ctx, smtp.Server{Host: "127.0.0.1", Port: port}, testEnvelope, testMessage)
		if out.Class != temp || out.Code != smtp.CodeConnectTimeout {
			t.Errorf("%+v", out)
		}
	})
}

// TestRowsOfCertificates: TLS connections that must be refused, with STARTTLS and with implicit TLS.
func TestRowsOfCertificates(t *testing.T) {
	t.Parallel()
	ca, other := newTestCA(t), newTestCA(t)
	good := ca.server(t, "127.0.0.1", time.Hour)
	old := good.Clone()
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	for _, r := range []struct {
		row
		config *tls.Config
	}{
		{row{name: "Unknown CA", code: smtp.CodeTLSCertificate, fields: "host", hint: "UNKNOWN_AUTHORITY"}, other.server(t, "127.0.0.1", time.Hour)},
		{row{name: "Wrong name", code: smtp.CodeTLSCertificate, fields: "host", hint: "HOSTNAME_MISMATCH"}, ca.server(t, "mx.example", time.Hour)},
		{row{name: "Expired", code: smtp.CodeTLSCertificate, fields: "host", hint: "EXPIRED"}, ca.server(t, "127.0.0.1", -time.Hour)},
		{row{name: "TLS 1.0/1.1 only", code: smtp.CodeTLSHandshake, fields: "tlsEnabled"}, old},
	} {
		for mode, turns := range map[string][]turn{"implicit": script(secure, greet, silence), "STARTTLS": script(greetTLS, upgrade, silence)} {
			t.Run(r.name+", "+mode, func(t *testing.T) {
				peer := newScripted(t, r.config, turns)
				server := peer.server()
				server.CA, server.SSL, server.TLS = ca.pem, mode == "implicit", mode != "implicit"
				withLogin(&server)
				r.class, r.stage = smtp.Permanent, smtp.StageTLS
				if server.TLS {
					r.stage = smtp.StageSTARTTLS
				}
				r.compare(t, newTestTransport(t, smtp.TransportOptions{}).Send(t.Context(), server, testEnvelope, testMessage))
				if got := peer.got(); strings.Contains(got, "AUTH") || strings.Contains(got, "MAIL") {
					t.Errorf("went on with %q", got)
				}
			})
		}
	}
}

// TestClearCredentials: credentials go in clear text only to loopback, whatever the host is called.
func TestClearCredentials(t *testing.T) {
	t.Parallel()
	address := otherAddress(t)
	peer := newScriptedAt(t, net.JoinHostPort(address.String(), "0"), nil, script(greetLogin, silence))
	dns := newTestDNS(t)
	dns.answer("localhost.example", address.String())
	tr := newTestTransport(t, smtp.TransportOptions{Allow: []netip.Prefix{netip.PrefixFrom(address, address.BitLen())}, Resolver: dns.resolver()})
	server := peer.server()
	server.Host = "localhost.example"
	withLogin(&server)
	out := tr.Send(t.Context(), server, testEnvelope, testMessage)
	row{class: smtp.Permanent, stage: smtp.StageAuth, code: smtp.CodeTLSRequired, fields: "tlsEnabled"}.compare(t, out)
	tr.Close()
	if got := peer.got(); strings.Contains(got, "AUTH") {
		t.Errorf("sent %q", got)
	}
}

// otherAddress returns an address of this machine that is not loopback.
func otherAddress(t *testing.T) netip.Addr {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && !n.IP.IsLoopback() && !n.IP.IsLinkLocalUnicast()
	})
	if i < 0 {
		t.Skip("this machine has no address but loopback")
	}
	a, _ := netip.AddrFromSlice(all[i].(*net.IPNet).IP)
	return a.Unmap()
}
