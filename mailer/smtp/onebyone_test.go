package smtp_test

import (
	"strings"
	"testing"
	"time"

	"fingerpost/mailer/smtp"
)

// unpipelined reads a command and checks that nothing follows it yet.
func unpipelined(command, reply string) []turn {
	return script(hear(command), func(k *talk) bool { return k.r.Buffered() == 0 }, reply)
}

// TestReplyBeforeTheMessage: a reply that arrives together with the 354 is no reply to a message that was not sent yet.
func TestReplyBeforeTheMessage(t *testing.T) {
	t.Parallel()
	peer := newScripted(t, nil, script(greet, "MAIL -> 250 ok", "RCPT -> 250 ok", "DATA -> 354 go|250 2.0.0 queued", silence))
	tr := newTestTransport(t, smtp.TransportOptions{})
	out := tr.Send(t.Context(), peer.server(), testEnvelope, testMessage)
	if out.Code != smtp.CodeProtocolError || out.Stage != smtp.StageData || strings.Contains(peer.got(), "Subject: hi") {
		t.Errorf("%+v, after %s", out, peer.got())
	}
}

// TestOneByOne: every server gets one command at a time, even one that offers pipelining.
func TestOneByOne(t *testing.T) {
	t.Parallel()
	ca := newTestCA(t)
	oneByOne := script(unpipelined("MAIL", "250 ok"), unpipelined("RCPT", "250 ok"), unpipelined("DATA", "354 go"), message, "250 ok")
	for name, c := range map[string][]turn{
		"offered":         script("220 hi", "EHLO -> 250-hi|250 PIPELINING", oneByOne, silence),
		"not offered":     script(greet, oneByOne, silence),
		"HELO":            script("220 hi", "EHLO -> 502 what", "HELO -> 250-hi|250 PIPELINING", oneByOne, silence),
		"before STARTTLS": script("220 hi", "EHLO -> 250-hi|250-PIPELINING|250 STARTTLS", upgrade, "EHLO -> 250 hi", oneByOne, silence),
	} {
		peer := newScripted(t, ca.server(t, "127.0.0.1", time.Hour), c)
		server := peer.server()
		server.CA, server.TLS = ca.pem, name == "before STARTTLS"
		if out := newTestTransport(t, smtp.TransportOptions{}).Send(t.Context(), server, testEnvelope, testMessage); out.Class != smtp.Accepted {
			t.Errorf("%s: %+v, after %s", name, out, peer.got())
		}
	}
}
