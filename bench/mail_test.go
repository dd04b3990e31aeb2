package main

import (
	"net/smtp"
	"strings"
	"testing"
	"time"

	"fingerpost/bench/mailsink"
	"fingerpost/bench/wire"
)

func goodMail(n int) []byte {
	m := mailsink.Mark(n)
	both := m + "\r\n" + mailsink.Recital
	return []byte("To: " + m + mailsink.Domain + "\r\nSubject: Order " + m + "\r\n\r\n--x\r\n\r\n" + both + "--x\r\n\r\n" + both + "--x--\r\n")
}

func TestJudgeSend(t *testing.T) {
	sent := wire.Answer{Status: 200, Body: []byte(`{"success":true,"message":"mail sent","data":{"sent":true,"logId":1},"timestamp":""}`)}
	queued := wire.Answer{Status: 202, Body: []byte(`{"success":true,"message":"mail queued","data":{"sent":false,"queued":true,"logId":1},"timestamp":""}`)}
	f := func(a wire.Answer, wantQueued, good bool) {
		t.Helper()
		if err := judgeSend(a, wantQueued); (err == nil) != good {
			t.Errorf("judgeSend(%d %s, %v): %v", a.Status, a.Body, wantQueued, err)
		}
	}
	f(sent, false, true)
	f(sent, true, false)
	f(queued, true, true)
	f(queued, false, false)
	f(wire.Answer{Status: 200, Body: queued.Body}, false, false)
}

// The secure sink accepts mail only after a login, so that neither side can omit it.
func TestSinkLogin(t *testing.T) {
	b := smallBench(t)
	m, err := b.newMailBench()
	if err != nil {
		t.Fatal(err)
	}
	c, err := smtp.Dial(m.secure.Addr)
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
	if m.secure.Checked() == 0 || m.secure.Most() > 5 {
		t.Errorf("%d mails over at most %d connections at a time", m.secure.Checked(), m.secure.Most())
	}
}
