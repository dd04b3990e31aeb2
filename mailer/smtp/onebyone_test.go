package smtp_test

import (
	"strings"
	"testing"
	"time"

	"fingerpost/mailer/smtp"
)

// apart hears a command behind which nothing else has come.
func apart(command, reply string) []turn {
	return script(hear(command), func(k *talk) bool { return k.r.Buffered() == 0 }, reply)
}

// TestReplyBeforeTheMessage: what comes with the leave to send is no reply to a message that nobody has sent yet.
func TestReplyBeforeTheMessage(t *testing.T) {
	peer := newScripted(t, nil, script(greet, "MAIL -> 250 ok", "RCPT -> 250 ok", "DATA -> 354 go|250 2.0.0 queued", silence))
	tr := newTestTransport(t, smtp.TransportOptions{})
	out := tr.Send(t.Context(), peer.server(), testEnvelope, testMessage)
	if out.Code != smtp.CodeProtocolError || out.Stage != smtp.StageData || strings.Contains(peer.got(), "Subject: hi") {
		t.Errorf("%+v, after %s", out, peer.got())
	}
}

// TestOneByOne: every server gets one command after the other, also one that offers to take several at a time.
func TestOneByOne(t *testing.T) {
	ca := newTestCA(t)
	apartAll := script(apart("MAIL", "250 ok"), apart("RCPT", "250 ok"), apart("DATA", "354 go"), message, "250 ok")
	for name, c := range map[string][]turn{
		"offered":         script("220 hi", "EHLO -> 250-hi|250 PIPELINING", apartAll, silence),
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
