package smtp_test

import (
	"strings"
	"testing"
	"time"

	"fingerpost/mailer/smtp"
)

// together hears commands before it answers the first of them, so that who waits for that answer waits for ever.
func together(commands string, replies ...string) []turn {
	var all []turn
	for command := range strings.SplitSeq(commands, " ") {
		all = append(all, hear(command))
	}
	return append(all, say(replies...))
}

// apart hears a command behind which nothing else has come.
func apart(command, reply string) []turn {
	return script(hear(command), func(k *talk) bool { return k.r.Buffered() == 0 }, reply)
}

var (
	greetPipe = script("220 peer.example ESMTP", "EHLO -> 250-peer.example|250-PIPELINING|250 SIZE 1000000")
	takesPipe = script(together("MAIL RCPT DATA", "250 ok", "250 ok", "354 go"), message, "250 2.0.0 queued as 4711")
	resetPipe = script(together("RSET MAIL RCPT DATA", "250 ok", "250 ok", "250 ok", "354 go"), message, "250 2.0.0 queued as 4711")
)

// TestPipelining: where the server offers it, the commands come at once, and whatever it refuses of them has the outcome that it
// has one by one. What is no longer needed is not sent, least of all the message, and a session that is still in step takes
// the next mail.
func TestPipelining(t *testing.T) {
	const temp, perm, config = smtp.Temporary, smtp.Permanent, smtp.BadConfig
	all := func(replies ...string) []turn { return together("MAIL RCPT DATA", replies...) }
	for _, c := range []struct {
		row
		first []turn // behind the greeting, in answer to the first mail
		next  []turn // then, in answer to the second one; nil where that is to come over a new connection
		heard string // of the first mail, behind DATA
	}{
		{row: row{name: "taken", class: smtp.Accepted, stage: smtp.StageEOD, smtp: 250, reply: "queued as 4711"},
			first: takesPipe, next: takesPipe, heard: "From: "},
		{row: row{name: "sender refused", class: config, stage: smtp.StageMail, code: smtp.CodeSenderRejected, fields: "fromEmail", smtp: 550, reply: "no"},
			first: all("550 5.1.0 no", "503 5.5.1 what", "503 5.5.1 what"), next: resetPipe},
		{row: row{name: "sender refused for now", class: temp, stage: smtp.StageMail, code: smtp.CodeTemporary, smtp: 451, reply: "later"},
			first: all("451-4.3.0 later", "451 4.3.0", "503 what", "554 what"), next: resetPipe},
		{row: row{name: "sender refused, the rest taken", class: config, stage: smtp.StageMail, code: smtp.CodeSenderRejected, fields: "fromEmail", smtp: 550, reply: "no"},
			first: script(all("550 no", "250 ok", "354 go"), hear(""), silence)},
		{row: row{name: "sender refused, then silence", class: config, stage: smtp.StageMail, code: smtp.CodeSenderRejected, fields: "fromEmail", smtp: 550, reply: "no"},
			first: script(all("550 no"), silence)},
		{row: row{name: "421 at MAIL", class: temp, stage: smtp.StageMail, code: smtp.CodeTemporary, smtp: 421, reply: "bye"},
			first: script(all("421 4.3.2 bye"), hangUp)},
		{row: row{name: "recipient refused", class: perm, stage: smtp.StageRcpt, code: smtp.CodeRecipientRejected, fields: "toEmail", smtp: 550, reply: "no such user"},
			first: all("250 ok", "550 5.1.1 no such user", "554 5.5.1 no valid recipients"), next: resetPipe},
		{row: row{name: "recipient refused, DATA taken", class: perm, stage: smtp.StageRcpt, code: smtp.CodeRecipientRejected, fields: "toEmail", smtp: 550, reply: "no such user"},
			first: script(all("250 ok", "550 5.1.1 no such user", "354 go"), ". -> 554 5.5.1 no valid recipients"), next: resetPipe, heard: "."},
		{row: row{name: "recipient refused for now, DATA and the dot taken", class: temp, stage: smtp.StageRcpt, code: smtp.CodeTemporary, smtp: 450, reply: "Greylisted"},
			first: script(all("250 ok", "450 4.2.0 Greylisted", "354 go"), ". -> 250 ok"), next: resetPipe, heard: "."},
		{row: row{name: "recipient refused, DATA taken, then silence", class: perm, stage: smtp.StageRcpt, code: smtp.CodeRecipientRejected, fields: "toEmail", smtp: 550, reply: "no such user"},
			first: script(all("250 ok", "550 5.1.1 no such user", "354 go"), hear("."), silence), heard: "."},
		{row: row{name: "relay denied without a login", class: config, stage: smtp.StageRcpt, code: smtp.CodeAuthRequired, fields: "username", smtp: 554, reply: "Relay access denied"},
			first: all("250 ok", "554 5.7.1 Relay access denied", "503 what"), next: resetPipe},
		{row: row{name: "421 at RCPT", class: temp, stage: smtp.StageRcpt, code: smtp.CodeTemporary, smtp: 421, reply: "bye"},
			first: script(all("250 ok", "421 4.3.2 bye"), hangUp)},
		{row: row{name: "DATA refused", class: perm, stage: smtp.StageData, code: smtp.CodeMessageRejected, smtp: 554, reply: "no"},
			first: all("250 ok", "250 ok", "554 5.7.1 no"), next: resetPipe},
		{row: row{name: "DATA refused for now", class: temp, stage: smtp.StageData, code: smtp.CodeTemporary, smtp: 451, reply: "later"},
			first: all("250 ok", "250 ok", "451 4.3.0 later"), next: resetPipe},
		{row: row{name: "closed behind RCPT", class: temp, stage: smtp.StageData, code: smtp.CodeConnectionLost},
			first: script(all("250 ok", "250 ok"), hangUp)},
		{row: row{name: "nonsense at RCPT", class: perm, stage: smtp.StageRcpt, code: smtp.CodeProtocolError, fields: "port"},
			first: script(all("250 ok", "sentinel-banner", "354 go"), silence)},
		{row: row{name: "message refused", class: perm, stage: smtp.StageEOD, code: smtp.CodeMessageRejected, smtp: 554, reply: "spam"},
			first: script(all("250 ok", "250 ok", "354 go"), message, "554 5.7.1 spam"), next: resetPipe, heard: "From: "},
		{row: row{name: "closed behind the dot", class: smtp.Uncertain, stage: smtp.StageEOD, code: smtp.CodeOutcomeUnknown},
			first: script(all("250 ok", "250 ok", "354 go"), message, hangUp), heard: "From: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			connections := 1
			if c.next == nil {
				connections = 2
			}
			peer := newScripted(t, nil, script(greetPipe, c.first, c.next, silence), script(greetPipe, takesPipe, silence))
			tr := newTestTransport(t, smtp.TransportOptions{})
			server := peer.server()
			began := time.Now()
			c.compare(t, tr.Send(t.Context(), server, testEnvelope, testMessage))
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
			_, behind, _ := strings.Cut(peer.got(), "DATA")
			if behind = strings.TrimPrefix(behind, "\n"); !strings.HasPrefix(behind, c.heard) || c.heard != "From: " && behind != c.heard {
				t.Errorf("the server has heard %q, want %q", behind, c.heard)
			}
			if out := tr.Send(t.Context(), server, testEnvelope, testMessage); out.Class != smtp.Accepted {
				t.Errorf("the next mail: %+v, after %s", out, peer.got())
			}
			if n, _, _ := peer.connections(); n != connections {
				t.Errorf("%d connections, want %d", n, connections)
			}
		})
	}
}

// TestPipeliningAfterSilence: a session that nobody has heard of for a while is asked for one reply before the rest follows.
func TestPipeliningAfterSilence(t *testing.T) {
	peer := newScripted(t, nil, script(greetPipe, takesPipe, apart("MAIL", "250 ok"), together("RCPT DATA", "250 ok", "354 go"),
		message, "250 2.0.0 queued as 4712", silence))
	tr := newTestTransport(t, smtp.TransportOptions{Limits: smtp.Limits{Trust: 1}})
	for range 2 {
		if out := tr.Send(t.Context(), peer.server(), testEnvelope, testMessage); out.Class != smtp.Accepted {
			t.Fatalf("%+v, after %s", out, peer.got())
		}
	}
	if n, _, _ := peer.connections(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

// TestReplyBeforeTheMessage: what comes with the leave to send is no reply to a message that nobody has sent yet.
func TestReplyBeforeTheMessage(t *testing.T) {
	peer := newScripted(t, nil, script(greetPipe, together("MAIL RCPT DATA", "250 ok", "250 ok", "354 go\r\n250 2.0.0 queued"), silence))
	tr := newTestTransport(t, smtp.TransportOptions{})
	out := tr.Send(t.Context(), peer.server(), testEnvelope, testMessage)
	if out.Code != smtp.CodeProtocolError || out.Stage != smtp.StageData || strings.Contains(peer.got(), "Subject: hi") {
		t.Errorf("%+v, after %s", out, peer.got())
	}
}

// TestPipeliningRSET: a session on which RSET is refused is replaced within the attempt, and gets no byte of the message.
func TestPipeliningRSET(t *testing.T) {
	for name, replies := range map[string][]turn{
		"refused":             together("RSET MAIL RCPT DATA", "502 what", "503 what", "503 what", "503 what"),
		"refused, DATA taken": together("RSET MAIL RCPT DATA", "502 what", "250 ok", "250 ok", "354 go"),
		"421":                 together("RSET", "421 bye"),
	} {
		t.Run(name, func(t *testing.T) {
			peer := newScripted(t, nil, script(greetPipe, together("MAIL RCPT DATA", "250 ok", "550 no", "503 what"), replies, silence),
				script(greetPipe, takesPipe, silence))
			tr := newTestTransport(t, smtp.TransportOptions{})
			if out := tr.Send(t.Context(), peer.server(), testEnvelope, testMessage); out.Code != smtp.CodeRecipientRejected {
				t.Fatalf("first: %+v", out)
			}
			if out := tr.Send(t.Context(), peer.server(), testEnvelope, testMessage); out.Class != smtp.Accepted || stepNames(out) != "dns connect send" {
				t.Errorf("second: %+v", out)
			}
			if n := strings.Count(peer.got(), "Subject: hi"); n != 1 {
				t.Errorf("the message has come %d times: %s", n, peer.got())
			}
		})
	}
}

// TestNoPipelining: a server that does not offer it, or has offered it in clear text only, gets one command after the other.
func TestNoPipelining(t *testing.T) {
	ca := newTestCA(t)
	apartAll := script(apart("MAIL", "250 ok"), apart("RCPT", "250 ok"), apart("DATA", "354 go"), message, "250 ok")
	for name, c := range map[string][]turn{
		"not offered":     script(greet, apartAll, silence),
		"HELO":            script("220 hi", "EHLO -> 502 what", "HELO -> 250-hi|250 PIPELINING", apartAll, silence),
		"before STARTTLS": script("220 hi", "EHLO -> 250-hi|250-PIPELINING|250 STARTTLS", upgrade, "EHLO -> 250 hi", apartAll, silence),
	} {
		peer := newScripted(t, ca.server(t, "127.0.0.1", time.Hour), c)
		server := peer.server()
		server.CA, server.TLS = ca.pem, name == "before STARTTLS"
		if out := newTestTransport(t, smtp.TransportOptions{}).Send(t.Context(), server, testEnvelope, testMessage); out.Class != smtp.Accepted {
			t.Errorf("%s: %+v, after %s", name, out, peer.got())
		}
	}
}
