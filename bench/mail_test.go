package main

import (
	"errors"
	"net"
	"net/smtp"
	"os"
	"strings"
	"testing"
	"time"
)

func goodMail(n int) []byte {
	m := mark(n)
	both := m + "\r\n" + recital
	return []byte("To: " + m + markDomain + "\r\nSubject: Order " + m + "\r\n\r\n--x\r\n\r\n" + both + "--x\r\n\r\n" + both + "--x--\r\n")
}

// Each mail must be at the sink once, complete, and only if it was sent.
func TestMarks(t *testing.T) {
	f := func(want string, use func(m *marks)) {
		t.Helper()
		m := newMarks()
		use(m)
		err := m.check()
		if want == "" && err == nil {
			return
		}
		if err == nil || want == "" || !strings.Contains(err.Error(), want) {
			t.Errorf("check: %v, want %q", err, want)
		}
	}
	come := func(m *marks, n int) { m.arrive(mark(n)+markDomain, goodMail(n)) }
	f("", func(*marks) {})
	f("", func(m *marks) { // number 2 was queued
		m.sent(1)
		come(m, 3)
		come(m, 1)
		m.sent(3)
	})
	f("mail 2 was reported as sent 1 times and came 0 times", func(m *marks) { m.sent(2) })
	f("mail 1 was reported as sent 0 times and came 1 times", func(m *marks) { come(m, 1) })
	f("mail 1 was reported as sent 1 times and came 2 times", func(m *marks) { m.sent(1); come(m, 1); come(m, 1) })
	f("mail 1 was reported as sent 0 times and came 1 times", func(m *marks) { // again, in a later round
		m.sent(1)
		come(m, 1)
		if err := m.check(); err != nil || m.checked != 1 {
			t.Errorf("%d checked, %v", m.checked, err)
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
		f(c.want, func(m *marks) {
			m.sent(1)
			m.arrive(mark(1)+markDomain, []byte(strings.Replace(whole, c.old, c.new, 1)))
		})
	}
	f("nobody's customer", func(m *marks) { m.arrive("ann@customer.example", goodMail(1)) })
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
	c, err := smtp.Dial(m.secure.addr)
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
	m.round = 200 * time.Millisecond
	bare, err := m.newBareMailer(m.secure, m.ca)
	if err != nil {
		t.Fatal(err)
	}
	send := m.sending("bare mailer", load{side: bare.side(&m.numbers), workers: 2})
	if err := send.measure(t.Context(), send); err != nil {
		t.Fatal(err)
	}
	// Two senders and the connection above; the sink may not yet have seen the end of the connection before each sender's present one.
	if most := m.secure.connections(); m.marks.checked == 0 || most > 5 {
		t.Errorf("%d mails over at most %d connections at a time", m.marks.checked, most)
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
