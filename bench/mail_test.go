package main

import (
	"net/smtp"
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
func TestSinkCounts(t *testing.T) {
	f := func(want string, use func(s *sink)) {
		t.Helper()
		s := &sink{balance: map[int]int{}}
		use(s)
		err := s.check()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("check: %v, want %q", err, want)
		}
	}
	come := func(s *sink, n int) { s.arrive(mark(n)+markDomain, goodMail(n)) }
	f("", func(*sink) {})
	f("", func(s *sink) { // number 2 was queued
		s.sent(1)
		come(s, 3)
		come(s, 1)
		s.sent(3)
	})
	f("mail 2 was reported as sent +1 times more than it came", func(s *sink) { s.sent(2) })
	f("mail 1 was reported as sent -1 times", func(s *sink) { come(s, 1) })
	f("mail 1 was reported as sent -1 times", func(s *sink) { s.sent(1); come(s, 1); come(s, 1) })
	f("mail 1 was reported as sent -1 times", func(s *sink) { // again, in a later round
		s.sent(1)
		come(s, 1)
		if err := s.check(); err != nil || s.checked != 1 {
			t.Errorf("%d checked, %v", s.checked, err)
		}
		come(s, 1)
	})
	whole := string(goodMail(1))
	for _, c := range [][2]string{{"Order m000000001", "Order m000000002"}, {"Order m", "order m"}, {"leave our house", "leave our home"}, {"--x--\r\n", ""}} {
		f("is not the one that was sent", func(s *sink) {
			s.sent(1)
			s.arrive(mark(1)+markDomain, []byte(strings.Replace(whole, c[0], c[1], 1)))
		})
	}
	f("is not the one that was sent", func(s *sink) { s.sent(1); s.arrive(mark(1)+"@else.example", goodMail(1)) })
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
	if err := c.Mail(bareFrom); err == nil || !strings.HasPrefix(err.Error(), "502") {
		t.Errorf("MAIL in clear text: %v", err)
	}
	if ok, _ := c.Extension("AUTH"); ok {
		t.Error("AUTH is offered in clear text")
	}
	// The bare mailer does all of it, once for each mail.
	m.sample = goodMail(0)
	m.round = 200 * time.Millisecond
	bare, err := m.newBareMailer("test", m.secure)
	if err != nil {
		t.Fatal(err)
	}
	send := m.sending("bare mailer", m.secure, load{side: bare.side(&m.numbers), workers: 2})
	if err := send.measure(t.Context(), send); err != nil {
		t.Fatal(err)
	}
	// Two senders and the connection above; the sink may not yet have seen the end of the connection before each sender's present one.
	if m.secure.checked == 0 || m.secure.most > 5 {
		t.Errorf("%d mails over at most %d connections at a time", m.secure.checked, m.secure.most)
	}
}
