package smtp_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"fingerpost/mailer/smtp"
)

var (
	testEnvelope = smtp.Envelope{From: "hello@acme.example", To: "ann@peer.example"}
	testMessage  = []byte("From: hello@acme.example\r\nSubject: hi\r\n\r\nHello.\r\n.dot\r\n..dots\r\n")
	testLoopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
)

// newTestTransport returns a Transport that may connect to this machine, with a short limit for QUIT.
func newTestTransport(t testing.TB, o smtp.TransportOptions) *smtp.Transport {
	t.Helper()
	if o.Allow == nil {
		o.Allow = testLoopback
	}
	if o.Limits.Quit == 0 {
		o.Limits.Quit = 50 * time.Millisecond
	}
	tr := smtp.NewTransport(o)
	t.Cleanup(tr.Close)
	return tr
}

// TestSend: mail arrives unchanged over all three kinds of connections, with a login and without, and the second mail
// uses the connection of the first.
func TestSend(t *testing.T) {
	t.Parallel()
	ca := newTestCA(t)
	config := ca.server(t, "127.0.0.1", time.Hour)
	for name, c := range map[string]struct {
		peer     *peer
		ssl, tls bool
		first    string
	}{
		"clear text": {newPeer(t, nil, false), false, false, "dns connect send"},
		"STARTTLS":   {newPeer(t, config, false), false, true, "dns connect tls auth send"},
		"implicit":   {newPeer(t, config, true), true, false, "dns connect tls auth send"},
		"both":       {newPeer(t, config, false), true, true, "dns connect tls auth send"}, // not on 465: STARTTLS
	} {
		t.Run(name, func(t *testing.T) {
			tr := newTestTransport(t, smtp.TransportOptions{})
			server := c.peer.server()
			if server.SSL, server.TLS = c.ssl, c.tls; c.ssl || c.tls {
				server.Username, server.Password, server.CA = testUser, testPassword, ca.pem
			}
			for i, steps := range []string{c.first, "send"} {
				out := tr.Send(t.Context(), server, testEnvelope, testMessage)
				if out.Class != smtp.Accepted || out.SMTPCode != 250 || out.Reply == "" {
					t.Fatalf("mail %d: %+v", i, out)
				}
				if got := stepNames(out); got != steps {
					t.Errorf("mail %d took %q, not %q", i, got, steps)
				}
			}
			mails, dials := c.peer.got()
			want := peerMail{testEnvelope.From, testEnvelope.To, string(testMessage)}
			if len(mails) != 2 || mails[0] != want || mails[1] != want || dials != 1 {
				t.Errorf("over %d connections came %q", dials, mails)
			}
			if out := tr.SendAlone(t.Context(), server, testEnvelope, testMessage, func(smtp.Step) {}); out.Class != smtp.Accepted || stepNames(out) != c.first {
				t.Errorf("alone: %+v", out)
			}
			if _, dials := c.peer.got(); dials != 2 {
				t.Errorf("a mail on its own brought the connections to %d", dials)
			}
		})
	}
}

func stepNames(out smtp.Outcome) string {
	var names []string
	for _, s := range out.Took {
		names = append(names, s.Name)
	}
	return strings.Join(names, " ")
}
