package smtp_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/mailer/smtp"
)

// TestStale: a connection that the server has closed between two mails is replaced within the attempt.
func TestStale(t *testing.T) {
	t.Parallel()
	for name, end := range map[string][]turn{
		"closed":          script(hangUp),
		"reset":           script(reset),
		"421 at MAIL":     script("MAIL -> 421 4.4.2 timeout", hangUp),
		"421 and closed":  script("421 4.4.2 timeout", hangUp),
		"silent":          script(silence),
		"out of step":     nil,
		"nonsense":        script("MAIL -> hello", silence),
		"closes at MAIL":  script(hear("MAIL"), hangUp),
		"refuses RSET":    nil,
		"RSET is silence": nil,
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && (name == "silent" || name == "RSET is silence") {
				t.Skip("waits for a timeout of 2 s")
			}
			t.Parallel()
			first, want := script(greet, takes, end), smtp.Accepted
			switch name {
			case "refuses RSET": // a refused recipient leaves a transaction behind
				first, want = script(greet, "MAIL -> 250 ok", "RCPT -> 550 no", "RSET -> 502 what", silence), smtp.Permanent
			case "out of step":
				first = script(greet, envelope, message, "250 ok|250 what", silence)
			case "RSET is silence":
				first, want = script(greet, "MAIL -> 250 ok", "RCPT -> 550 no", silence), smtp.Permanent
			}
			peer := newScripted(t, nil, first, script(greet, takes, silence))
			tr := newTestTransport(t, smtp.TransportOptions{Limits: smtp.Limits{Command: 2 * time.Second}})
			if out := tr.Send(t.Context(), peer.server(), testEnvelope, testMessage); out.Class != want {
				t.Fatalf("first: %+v", out)
			}
			out := tr.Send(t.Context(), peer.server(), testEnvelope, testMessage)
			if out.Class != smtp.Accepted || stepNames(out) != "dns connect send" {
				t.Errorf("second: %+v", out)
			}
			if n, _, _ := peer.connections(); n != 2 {
				t.Errorf("%d connections", n)
			}
		})
	}
}

// TestNoSecondTry: a failure after MAIL on a reused connection is not caused by the connection.
func TestNoSecondTry(t *testing.T) {
	t.Parallel()
	for name, second := range map[string][]turn{
		"RCPT": script("MAIL -> 250 ok", hear("RCPT"), hangUp),
		"dot":  script(envelope, message, hangUp),
		"MAIL": script("MAIL -> 550 no", silence),
	} {
		peer := newScripted(t, nil, script(greet, takes, second), script(greet, takes, silence))
		tr := newTestTransport(t, smtp.TransportOptions{})
		tr.Send(t.Context(), peer.server(), testEnvelope, testMessage)
		if out := tr.Send(t.Context(), peer.server(), testEnvelope, testMessage); out.Class == smtp.Accepted {
			t.Errorf("%s: %+v", name, out)
		}
		if n, _, _ := peer.connections(); n != 1 {
			t.Errorf("%s: %d connections", name, n)
		}
	}
}

// TestReuseAfterRefusal: the connection of a refused mail is reused, and nothing of the mail remains on it.
func TestReuseAfterRefusal(t *testing.T) {
	t.Parallel()
	peer := newPeer(t, nil, false)
	tr := newTestTransport(t, smtp.TransportOptions{})
	for range 3 {
		out := tr.Send(t.Context(), peer.server(), smtp.Envelope{From: testEnvelope.From, To: "nobody@peer.example"}, testMessage)
		if out.Code != smtp.CodeRecipientRejected || out.Enhanced != "5.1.1" {
			t.Fatalf("%+v", out)
		}
		if out := tr.Send(t.Context(), peer.server(), testEnvelope, testMessage); out.Class != smtp.Accepted {
			t.Fatalf("%+v", out)
		}
	}
	if mails, dials := peer.got(); len(mails) != 3 || dials != 1 {
		t.Errorf("%d mails over %d connections", len(mails), dials)
	}
	strict := newScripted(t, nil, script(greet, "MAIL -> 250 ok", "RCPT -> 550 no", "RSET -> 250 ok", takes, silence))
	for i, want := range []smtp.Class{smtp.Permanent, smtp.Accepted} {
		if out := tr.Send(t.Context(), strict.server(), testEnvelope, testMessage); out.Class != want {
			t.Errorf("mail %d: %+v", i, out)
		}
	}
	if n, _, _ := strict.connections(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// TestContext: the end of the context ends an attempt at once at each stage before the final dot.
func TestContext(t *testing.T) {
	t.Parallel()
	ca := newTestCA(t)
	reached := make(chan chan struct{}, 1)
	here := func(*talk) bool { close(<-reached); return true }
	for _, c := range []struct {
		stage  smtp.Stage
		script []turn
		server func(*smtp.Server)
		size   int
	}{
		{"", script(here, silence), nil, 1}, // on the way to the greeting,
		{smtp.StageTLS, script(part, here, silence), withSSL, 1},
		{smtp.StageEHLO, script("220 hi", hear("EHLO"), here, silence), nil, 1},
		{smtp.StageSTARTTLS, script(greetTLS, hear("STARTTLS"), here, silence), withTLS, 1},
		{smtp.StageSTARTTLS, script(greetTLS, "STARTTLS -> 220 go", here, silence), withTLS, 1},
		{smtp.StageAuth, script(greetLogin, hear("AUTH"), here, silence), withLogin, 1},
		{smtp.StageMail, script(greet, hear("MAIL"), here, silence), nil, 1},
		{smtp.StageRcpt, script(greet, "MAIL -> 250 ok", hear("RCPT"), here, silence), nil, 1},
		{smtp.StageData, script(greet, "MAIL -> 250 ok", "RCPT -> 250 ok", hear("DATA"), here, silence), nil, 1},
		{smtp.StageBody, script(plain, envelope, part, here, stall), nil, 1_000_000},
	} {
		t.Run(string(c.stage), func(t *testing.T) {
			peer := newScripted(t, ca.server(t, "127.0.0.1", time.Hour), c.script)
			tr := newTestTransport(t, smtp.TransportOptions{})
			server := peer.server()
			if server.CA = ca.pem; c.server != nil {
				c.server(&server)
			}
			ch := make(chan struct{})
			reached <- ch
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-ch; cancel() }()
			began := time.Now()
			out := tr.Send(ctx, server, testEnvelope, bytes.Repeat([]byte("0123456789\r\n"), c.size))
			if out.Class != smtp.Temporary || c.stage != "" && out.Stage != c.stage || out.Code == "" {
				t.Errorf("%+v", out)
			}
			testrig.AtMost(t, time.Since(began), 10*time.Second)
		})
	}
}

// TestContextAfterDot: after the final dot the context no longer applies, and the connection is reused.
func TestContextAfterDot(t *testing.T) {
	t.Parallel()
	dot, ended := make(chan struct{}), make(chan struct{})
	peer := newScripted(t, nil, script(greet, envelope, message, tell(dot), wait(ended), "250 ok", takes, silence))
	tr := newTestTransport(t, smtp.TransportOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-dot
		cancel()
		context.AfterFunc(ctx, func() { close(ended) })
	}()
	if out := tr.Send(ctx, peer.server(), testEnvelope, testMessage); out.Class != smtp.Accepted {
		t.Errorf("%+v", out)
	}
	if out := tr.Send(t.Context(), peer.server(), testEnvelope, testMessage); out.Class != smtp.Accepted || stepNames(out) != "send" {
		t.Errorf("then: %+v", out)
	}
}

// TestBodyBreaks: after half a message neither the dot nor QUIT is sent: a server would take the half for the whole.
func TestBodyBreaks(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	var rest bytes.Buffer
	stalled, all := make(chan struct{}), make(chan struct{})
	drain := func(k *talk) bool { _, _ = rest.ReadFrom(k.r); close(all); return false }
	peer := newScripted(t, nil, script(plain, envelope, wait(stalled), drain))
	tr := newTestTransport(t, smtp.TransportOptions{Limits: smtp.Limits{Body: short}})
	out := tr.Send(t.Context(), peer.server(), testEnvelope, bytes.Repeat([]byte("0123456789\r\n"), 1_000_000))
	close(stalled)
	if out.Class != smtp.Temporary || out.Code != smtp.CodeConnectionLost || out.Stage != smtp.StageBody {
		t.Errorf("%+v", out)
	}
	<-all
	if s := rest.String(); len(s) == 0 || strings.Contains(s, "\r\n.") || strings.Contains(s, "QUIT") {
		t.Errorf("%d bytes came, and the last are %q", len(s), s[max(0, len(s)-40):])
	}
}

// TestQuit: the answer does not wait for QUIT, which has its own limit.
func TestQuit(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	goOn := make(chan struct{})
	peer := newScripted(t, nil, script(greetLogin, "AUTH -> 535 no", hear("QUIT"), wait(goOn), hangUp))
	server := peer.server()
	withLogin(&server)
	tr := newTestTransport(t, smtp.TransportOptions{Limits: smtp.Limits{Quit: time.Minute}})
	if out := tr.Send(t.Context(), server, testEnvelope, testMessage); out.Code != smtp.CodeAuthFailed {
		t.Errorf("%+v", out)
	}
	testrig.Eventually(t, "QUIT", func() bool { return strings.HasSuffix(peer.got(), "QUIT") })
	if _, open, _ := peer.connections(); open != 1 { // else Send has waited
		t.Errorf("%d connections", open)
	}
	close(goOn)

	peer = newScripted(t, nil, script(greet, takes, hear("QUIT"), stall))
	tr = newTestTransport(t, smtp.TransportOptions{Limits: smtp.Limits{Quit: short}})
	if out := tr.Send(t.Context(), peer.server(), testEnvelope, testMessage); out.Class != smtp.Accepted {
		t.Errorf("%+v", out)
	}
	began := time.Now()
	tr.Close()
	testrig.AtMost(t, time.Since(began), 10*time.Second)
	if !strings.HasSuffix(peer.got(), "QUIT") {
		t.Errorf("heard %q", peer.got())
	}
}

// TestDialects: unusual replies of servers, and the commands that they need.
func TestDialects(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	ca := newTestCA(t)
	config := ca.server(t, "127.0.0.1", time.Hour)
	accepted := script(takes, silence)
	for name, c := range map[string]struct {
		script []turn
		tls    bool
		heard  []string
	}{
		"keywords in lower case": {script("220 hi", "EHLO -> 250-hi|250-size 1000|250 starttls", upgrade,
			"EHLO -> 250-hi|250 auth login plain", login, accepted), true, []string{"AUTH PLAIN AGhlbGxvQGFjbWUuZXhhbXBsZQBzZW50aW5lbC1IdW50ZXIyLXBhc3M="}},
		"old AUTH keyword": {script("220 hi", "EHLO -> 250-hi|250 AUTH=PLAIN", login, accepted), false, []string{"AUTH PLAIN"}},
		"LOGIN alone": {script("220 hi", "EHLO -> 250-hi|250 AUTH LOGIN GSSAPI", "AUTH LOGIN -> 334 VXNlcm5hbWU6", hear64,
			"334 d2hhdGV2ZXI=", hear64, "235 ok", accepted), false, []string{testUser, testPassword}},
		"LOGIN asked for in clear text": {script("220 hi", "EHLO -> 250-hi|250 AUTH LOGIN", "AUTH LOGIN -> 334 Username:", hear64,
			"334", hear64, "235 ok", accepted), false, []string{testUser, testPassword}},
		"CRAM-MD5 alone": {script("220 hi", "EHLO -> 250-hi|250 AUTH CRAM-MD5", "AUTH CRAM-MD5 -> 334 PDE4OTYuNjk3MTcwOTUyQHBvc3RvZmZpY2U+",
			hear64, "235 ok", accepted), false, []string{testUser + " "}},
		"greeting of several lines":   {script("220-hi|220-there|220 ESMTP", "EHLO -> 250-hi|250 AUTH PLAIN", login, accepted), false, nil},
		"codes without text":          {script("220", "EHLO -> 250-|250 AUTH PLAIN", "AUTH -> 235", "MAIL -> 250", "RCPT -> 251", "DATA -> 354", message, "250", silence), false, nil},
		"offers parameters for MAIL":  {script("220 hi", "EHLO -> 250-hi|250-8BITMIME|250-SMTPUTF8|250-SIZE 0|250 AUTH PLAIN", login, accepted), false, []string{"MAIL FROM:<hello@acme.example>\n"}},
		"LF ends":                     {script(func(k *talk) bool { _, err := k.conn.Write([]byte("220 hi\n")); return err == nil }, "EHLO -> 250-hi|250 AUTH PLAIN", login, accepted), false, nil},
		"offers more behind STARTTLS": {script("220 hi", "EHLO -> 250-hi|250-AUTH GSSAPI|250 STARTTLS", upgrade, offerAuth, login, accepted), true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			peer := newScripted(t, config, c.script)
			server := peer.server()
			server.TLS, server.CA = c.tls, ca.pem
			withLogin(&server)
			out := newTestTransport(t, smtp.TransportOptions{}).Send(t.Context(), server, testEnvelope, testMessage)
			got := peer.got()
			if out.Class != smtp.Accepted {
				t.Errorf("%+v, after %q", out, got)
			}
			for _, h := range c.heard {
				if !strings.Contains(got, h) {
					t.Errorf("no %q in %q", h, got)
				}
			}
		})
	}
	t.Run("a name of the server's own", func(t *testing.T) {
		peer := newScripted(t, nil, script("220 hi", "EHLO -> 250 hi", takes, silence))
		server := peer.server()
		server.EHLOName = "shop.acme.example"
		tr := newTestTransport(t, smtp.TransportOptions{HelloName: "mail.acme.example"})
		if out := tr.Send(t.Context(), server, testEnvelope, testMessage); out.Class != smtp.Accepted {
			t.Errorf("%+v", out)
		}
		if got := peer.got(); !strings.HasPrefix(got, "EHLO shop.acme.example\n") {
			t.Errorf("%q", got)
		}
	})
	t.Run("only HELO", func(t *testing.T) {
		peer := newScripted(t, nil, script("220 hi", "EHLO -> 500 what", "HELO -> 250 hi", takes, silence))
		tr := newTestTransport(t, smtp.TransportOptions{HelloName: "mail.acme.example"})
		if out := tr.Send(t.Context(), peer.server(), testEnvelope, testMessage); out.Class != smtp.Accepted {
			t.Errorf("%+v", out)
		}
		if got := peer.got(); !strings.HasPrefix(got, "EHLO mail.acme.example\nHELO mail.acme.example\n") {
			t.Errorf("%q", got)
		}
	})
}

// TestNoSecret: a password that a server repeats, in any form in which AUTH has sent it, does not show, nor does it
// when a Server, or a value that contains one, is printed.
func TestNoSecret(t *testing.T) {
	t.Parallel()
	forms := []string{testPassword, strings.ToUpper(testPassword), "AGhlbGxvQGFjbWUuZXhhbXBsZQBzZW50aW5lbC1IdW50ZXIyLXBhc3M=", "c2VudGluZWwtSHVudGVyMi1wYXNz",
		"x|535 " + testPassword, testPassword + strings.Repeat("x", 300)}
	for _, form := range forms {
		peer := newScripted(t, nil, authReply("535-5.7.8 you said|535-5.7.8 "+strings.ReplaceAll(form, "|", "\r\n")+"|535 5.7.8 which is wrong"))
		server := peer.server()
		withLogin(&server)
		out := newTestTransport(t, smtp.TransportOptions{}).Send(t.Context(), server, testEnvelope, testMessage)
		if s := dump(out); out.Code != smtp.CodeAuthFailed || out.Reply != "(withheld: it repeats a secret)" || strings.Contains(strings.ToLower(s), "hunter2") || strings.Contains(s, "SHVudGVyM") {
			t.Errorf("%q: %s", form, s)
		}
	}
	server := smtp.Server{Host: "smtp.example", Port: 587, TLS: true}
	withLogin(&server)
	var b bytes.Buffer
	tr := newTestTransport(t, smtp.TransportOptions{})
	slog.New(slog.NewTextHandler(&b, nil)).Info("x", "server", server, "pointer", &server, "all", []any{server, tr})
	slog.New(slog.NewJSONHandler(&b, nil)).Info("x", "server", server, "all", map[string]any{"s": server})
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d", "%x", "%q"} {
		fmt.Fprintf(&b, verb+verb+verb+verb+"\n", server, &server, []smtp.Server{server}, tr)
	}
	if s := b.String(); strings.Contains(s, "unter2") || strings.Contains(s, fmt.Sprintf("%x", testPassword)) || !strings.Contains(s, "smtp.example:587 (STARTTLS, with a login)") {
		t.Error(s)
	}
}
