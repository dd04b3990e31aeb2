package smtp_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/mailer/smtp"
)

// TestPoolBounds: many concurrent mails stay within both bounds, all arrive, and connections are reused.
func TestPoolBounds(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]smtp.TransportOptions{
		"per server": {PerServer: 3}, "total": {PerServer: 100, Total: 3}, "default": {},
	} {
		t.Run(name, func(t *testing.T) {
			const mails = 60
			var rounds []turn
			for range mails {
				rounds = append(rounds, takes...)
			}
			peer := newScripted(t, nil, script(greet, rounds, silence))
			tr := newTestTransport(t, o)
			var all sync.WaitGroup
			for range mails {
				all.Go(func() {
					if out := tr.Send(t.Context(), peer.server(), testEnvelope, testMessage); out.Class != smtp.Accepted {
						t.Errorf("%+v", out)
					}
				})
			}
			all.Wait()
			want := 3
			if name == "default" {
				want = smtp.DefaultConnections
			}
			if n, _, most := peer.connections(); most > want || n > want {
				t.Errorf("%d connections, %d at the same time, for %d", n, most, want)
			}
			if n := strings.Count(peer.got(), "MAIL FROM"); n != mails {
				t.Errorf("%d mails", n)
			}
		})
	}
}

// TestPoolTurns: if a server with more mail uses all connections, the next free one goes to a server that has none.
func TestPoolTurns(t *testing.T) {
	t.Parallel()
	step, last := make(chan struct{}), make(chan struct{})
	busy := newScripted(t, nil, script(greet, envelope, message, wait(step), "250 ok", envelope, message, wait(last), "250 ok", silence))
	other := newScripted(t, nil, script(greet, takes, silence))
	tr := newTestTransport(t, smtp.TransportOptions{PerServer: 2, Total: 2})
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 6 { // two of them wait for the reply to the dot, four for a connection
		all.Go(func() { tr.Send(ctx, busy.server(), testEnvelope, testMessage) })
	}
	testrig.Eventually(t, "two mails are out", func() bool { return strings.Count(busy.got(), "DATA") == 2 })
	done := make(chan smtp.Outcome, 1)
	patience, stop := context.WithTimeout(t.Context(), testrig.Patience)
	defer stop()
	go func() { done <- tr.Send(patience, other.server(), testEnvelope, testMessage) }()
	testrig.Eventually(t, "the other one waits", func() bool { return smtp.Waiting(tr) == 5 })
	close(step)
	if out := <-done; out.Class != smtp.Accepted {
		t.Errorf("%+v", out)
	}
	if n := smtp.Waiting(tr); n == 0 {
		t.Error("it was the last")
	}
	cancel()
	close(last)
	all.Wait()
}

// TestPoolEvicts: an idle connection makes room for one that is needed.
func TestPoolEvicts(t *testing.T) {
	t.Parallel()
	tr := newTestTransport(t, smtp.TransportOptions{Total: 2})
	var peers []*scripted
	for range 5 {
		peers = append(peers, newScripted(t, nil, script(greet, takes, takes, silence)))
	}
	for _, p := range peers {
		if out := tr.Send(t.Context(), p.server(), testEnvelope, testMessage); out.Class != smtp.Accepted {
			t.Fatalf("%+v", out)
		}
	}
	open := func() (all string) {
		for _, p := range peers {
			_, n, _ := p.connections()
			all += fmt.Sprint(n)
		}
		return all
	}
	testrig.Eventually(t, "the two latest are kept", func() bool { return open() == "00011" })
	if out := tr.Send(t.Context(), peers[3].server(), testEnvelope, testMessage); stepNames(out) != "send" {
		t.Errorf("%+v", out)
	}
}

// TestPoolIdle: an unused connection is ended with QUIT, and one that has carried enough mails is not reused.
func TestPoolIdle(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	peer := newScripted(t, nil, script(greet, takes, "QUIT -> 221 bye", hangUp))
	tr := newTestTransport(t, smtp.TransportOptions{Idle: short})
	tr.Send(t.Context(), peer.server(), testEnvelope, testMessage)
	testrig.Eventually(t, "QUIT", func() bool { return strings.HasSuffix(peer.got(), "QUIT") })
	testrig.Eventually(t, "nothing is left", func() bool { return smtp.Queues(tr) == 0 })

	real := newPeer(t, nil, false)
	tr = newTestTransport(t, smtp.TransportOptions{})
	for range 201 {
		if out := tr.Send(t.Context(), real.server(), testEnvelope, testMessage); out.Class != smtp.Accepted {
			t.Fatalf("%+v", out)
		}
	}
	if _, dials := real.got(); dials != 3 {
		t.Errorf("201 mails over %d connections", dials)
	}
}

// TestPoolServers: only mail to an equal Server reuses a connection, so no other password, CA or kind of TLS gets it.
func TestPoolServers(t *testing.T) {
	t.Parallel()
	peer := newScripted(t, nil, script(greetLogin, login, takes, takes, silence))
	tr := newTestTransport(t, smtp.TransportOptions{})
	server := peer.server()
	withLogin(&server)
	send := func(steps string) {
		t.Helper()
		if out := tr.Send(t.Context(), server, testEnvelope, testMessage); stepNames(out) != steps {
			t.Errorf("%+v", out)
		}
	}
	send("dns connect auth send")
	send("send")
	server.Password = "another"
	send("dns connect auth send")
	if got := peer.got(); strings.Count(got, "AUTH") != 2 {
		t.Errorf("%q", got)
	}
}

// TestClose: waiting mail gets an error, running mail ends well, and no mail starts.
func TestClose(t *testing.T) {
	t.Parallel()
	step := make(chan struct{})
	peer := newScripted(t, nil, script(greet, envelope, message, wait(step), "250 ok", silence))
	tr := newTestTransport(t, smtp.TransportOptions{PerServer: 1})
	outs := make(chan smtp.Outcome, 2)
	send := func() { outs <- tr.Send(t.Context(), peer.server(), testEnvelope, testMessage) }
	go send()
	testrig.Eventually(t, "the first is under way", func() bool { return strings.Contains(peer.got(), "DATA") })
	go send()
	testrig.Eventually(t, "the second waits", func() bool { return smtp.Waiting(tr) == 1 })
	tr.Close()
	if out := <-outs; out.Class != smtp.Temporary || out.Code != "UNAVAILABLE" {
		t.Errorf("%+v", out)
	}
	if out := tr.Send(t.Context(), peer.server(), testEnvelope, testMessage); out.Class != smtp.Temporary || out.Code != "UNAVAILABLE" {
		t.Errorf("%+v", out)
	}
	close(step)
	if out := <-outs; out.Class != smtp.Accepted {
		t.Errorf("%+v", out)
	}
	testrig.Eventually(t, "its connection is closed", func() bool { _, open, _ := peer.connections(); return open == 0 })
}

// TestWaitingGivesUp: a mail that waits for a connection stops when its context ends, and leaves no trace.
func TestWaitingGivesUp(t *testing.T) {
	t.Parallel()
	step := make(chan struct{})
	peer := newScripted(t, nil, script(greet, envelope, message, wait(step), "250 ok", silence))
	tr := newTestTransport(t, smtp.TransportOptions{PerServer: 1})
	var first, all sync.WaitGroup
	first.Go(func() { tr.Send(t.Context(), peer.server(), testEnvelope, testMessage) })
	testrig.Eventually(t, "one is under way", func() bool { return strings.Contains(peer.got(), "DATA") })
	ctx, cancel := context.WithCancel(t.Context())
	for range 20 {
		all.Go(func() {
			out := tr.Send(ctx, peer.server(), testEnvelope, testMessage)
			row{class: smtp.Temporary, stage: smtp.StageDial, code: smtp.CodeConnectTimeout, says: "was free in time"}.judge(t, out)
		})
	}
	testrig.Eventually(t, "all wait", func() bool { return smtp.Waiting(tr) == 20 })
	cancel()
	all.Wait()
	if n := smtp.Waiting(tr); n != 0 {
		t.Errorf("%d waiting", n)
	}
	close(step)
	first.Wait()
	tr.Close()
	if n := smtp.Queues(tr); n != 0 {
		t.Errorf("%d lanes", n)
	}
}

// TestEnvelope: no address becomes more than one argument of a command, and an invalid one is not tried.
func TestEnvelopeOnTheWire(t *testing.T) {
	t.Parallel()
	peer := newScripted(t, nil, script(greet, takes))
	tr := newTestTransport(t, smtp.TransportOptions{})
	for _, bad := range []string{"", "x", "@x", "x@", "a@b>", "a@b> NOTIFY=SUCCESS", "<a@b", "a@b\r\nRCPT TO:<c@d>", "a@b\x00", "a@bü", "a b@c", "a@" + strings.Repeat("b", 260)} {
		out := tr.Send(t.Context(), peer.server(), smtp.Envelope{From: testEnvelope.From, To: bad}, testMessage)
		row{class: smtp.Permanent, stage: smtp.StageRcpt, code: smtp.CodeRecipientRejected, fields: "toEmail"}.judge(t, out)
		out = tr.Send(t.Context(), peer.server(), smtp.Envelope{From: bad, To: testEnvelope.To}, testMessage)
		row{class: smtp.BadConfig, stage: smtp.StageMail, code: smtp.CodeSenderRejected, fields: "fromEmail"}.judge(t, out)
	}
	if n, _, _ := peer.connections(); n != 0 {
		t.Errorf("%d connections", n)
	}
}
