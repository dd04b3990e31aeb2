package main

import (
	"errors"
	"net"
	"net/smtp"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSmokeMail runs the whole command against the real binary. Outside of CI the run of it in TestSmokeAll is enough.
func TestSmokeMail(t *testing.T) {
	if os.Getenv("CI") == "" {
		t.Skip("TestSmokeAll runs this command, too")
	}
	b := smallBench(t)
	b.load.connections, b.load.rounds, b.load.round = 10, 1, 100*time.Millisecond
	b.logEntries, b.waiting, b.load.rate = deepPage*logPage+100, 30, 100
	rep, err := runMail(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"10 clients: raw sends", "10 clients: TLS: raw sends", "30 mails wait for dead servers: its latency p99",
		"mail log of 2100 entries: first page, p50", "mail log of 2100 entries: page 100, p50",
	} {
		if r := find(t, rep, name); r.Figure.Median <= 0 || r.Baseline == nil || r.Baseline.Median <= 0 || r.Ratio == nil || r.Goal == nil {
			t.Errorf("row %+v", r)
		}
	}
	if n, ok := rep.Parameters["messageBytes"].(int); !ok || n < 2*recitedBytes {
		t.Errorf("a message has %v bytes", rep.Parameters["messageBytes"])
	}
	if left, err := filepath.Glob(filepath.Join(b.work, "bare-mail*")); err != nil || len(left) > 0 {
		t.Errorf("the bare mailer left %v; %v", left, err)
	}

	// The log of another run stays.
	m, err := b.newMailBench()
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	if err := m.readLog(t.Context(), new(report)); err != nil {
		t.Fatal(err)
	}
	if n := m.marks.checked(); n > 0 {
		t.Errorf("%d mails were sent for a log that was there", n)
	}
}

func goodMail(n int) []byte {
	m := mark(n)
	both := m + "\r\n" + string(recital)
	return []byte("To: " + m + markDomain + "\r\nSubject: Order " + m + "\r\n\r\n--x\r\n\r\n" + both + "--x\r\n\r\n" + both + "--x--\r\n")
}

// Each mail must be at the sink once, complete, and only if it was sent.
func TestMarks(t *testing.T) {
	rcpt := func(n int) []byte { return []byte(mark(n) + markDomain) }
	f := func(want string, next int, use func(m *marks)) {
		t.Helper()
		var m marks
		m.first = 1
		use(&m)
		err := m.check(next)
		if want == "" && err == nil {
			return
		}
		if err == nil || want == "" || !strings.Contains(err.Error(), want) {
			t.Errorf("check: %v, want %q", err, want)
		}
	}
	come := func(m *marks, n int) { m.arrive(rcpt(n), goodMail(n)) }
	f("", 1, func(*marks) {})
	f("", 4, func(m *marks) { // number 2 was queued
		m.sent(1)
		come(m, 3)
		come(m, 1)
		m.sent(3)
	})
	f("mail 2 was reported as sent 1 times and came 0 times", 3, func(m *marks) { m.sent(2) })
	f("mail 1 was reported as sent 0 times and came 1 times", 3, func(m *marks) { come(m, 1) })
	f("mail 1 was reported as sent 1 times and came 2 times", 2, func(m *marks) { m.sent(1); come(m, 1); come(m, 1) })
	f("not given out", 2, func(m *marks) { come(m, 2) })
	f("mail 1 came again", 3, func(m *marks) { // in a later round
		m.sent(1)
		come(m, 1)
		if err := m.check(2); err != nil {
			t.Error(err)
		}
		if m.checked() != 1 {
			t.Errorf("%d checked", m.checked())
		}
		come(m, 1)
	})
	whole := string(goodMail(1))
	for _, c := range []struct{ want, old, new string }{
		{"places", "Order m000000001", "Order m000000002"},
		{"subject", "Order m", "order m"},
		{"whole text", "leave our house", "leave our home"},
		{"cut off", "--x--\r\n", ""},
	} {
		f(c.want, 2, func(m *marks) {
			m.sent(1)
			m.arrive(rcpt(1), []byte(strings.Replace(whole, c.old, c.new, 1)))
		})
	}
	f("nobody's customer", 2, func(m *marks) { m.arrive([]byte("ann@customer.example"), goodMail(1)) })
}

func TestJudgeSend(t *testing.T) {
	sent := answer{status: 200, body: []byte(`{"success":true,"message":"mail sent","data":{"sent":true,"logId":1},"timestamp":""}`)}
	queued := answer{status: 202, body: []byte(`{"success":true,"message":"mail queued","data":{"sent":false,"queued":true,"logId":1},"timestamp":""}`)}
	f := func(a answer, wantQueued, good bool) {
		t.Helper()
		if err := judgeSend(a, wantQueued); (err == nil) != good {
			t.Errorf("judgeSend(%d %s, %v): %v", a.status, a.body, wantQueued, err)
		}
	}
	f(sent, false, true)
	f(sent, true, false)
	f(queued, true, true)
	f(queued, false, false)
	f(answer{status: 200, body: queued.body}, false, false)
}

// The secure sink accepts mail only after a login, so that neither side can omit it.
func TestSinkLogin(t *testing.T) {
	b := smallBench(t)
	m, err := b.newMailBench()
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	addr := m.secure.listener.Addr().String()
	c, err := smtp.Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Mail(bareFrom); err == nil || !strings.HasPrefix(err.Error(), "530") {
		t.Errorf("MAIL in clear text: %v", err)
	}
	if ok, _ := c.Extension("AUTH"); ok {
		t.Error("AUTH is offered in clear text")
	}
	// The bare mailer does all of it, once for each mail.
	m.sample = goodMail(0)
	m.most, m.load.rounds, m.load.round = 2, 1, 20*time.Millisecond
	bare, err := m.bareMailer(m.secure, m.ca, true)
	if err != nil {
		t.Fatal(err)
	}
	m.secure.connections()
	if err := m.writeRound(t.Context(), m.bare(bare), 2, new(writeFigures)); err != nil {
		t.Fatal(err)
	}
	if err := bare.stop(); err != nil {
		t.Fatal(err)
	}
	most, dials := m.secure.connections()
	if n := m.marks.checked(); n == 0 || dials != n || most > 3 {
		t.Errorf("%d mails over %d connections, at most %d at a time", n, dials, most)
	}
}

func TestDeadServer(t *testing.T) {
	d, err := newDeadServer(7)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	if c, err := net.Dial("tcp", d.address); err == nil {
		c.Close()
		t.Fatal("it takes connections")
	}
	if err := d.hang(); err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", d.address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("it says something: %v", err)
	}
}
