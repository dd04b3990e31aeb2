package mailsink

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/smtp"
	"strings"
	"testing"
)

func goodMail(n int) []byte {
	m := Mark(n)
	both := m + "\r\n" + Recital
	return []byte("To: " + m + Domain + "\r\nSubject: Order " + m + "\r\n\r\n--x\r\n\r\n" + both + "--x\r\n\r\n" + both + "--x--\r\n")
}

// Each mail must be at the sink once, complete, and only if it was sent.
func TestSinkCounts(t *testing.T) {
	f := func(want string, use func(s *Sink)) {
		t.Helper()
		s := &Sink{balance: map[int]int{}}
		use(s)
		err := s.Check()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("check: %v, want %q", err, want)
		}
	}
	come := func(s *Sink, n int) { s.arrive(Mark(n)+Domain, goodMail(n)) }
	f("", func(*Sink) {})
	f("", func(s *Sink) { // number 2 was queued
		s.Sent(1)
		come(s, 3)
		come(s, 1)
		s.Sent(3)
	})
	f("mail 2 was reported as sent +1 times more than it came", func(s *Sink) { s.Sent(2) })
	f("mail 1 was reported as sent -1 times", func(s *Sink) { come(s, 1) })
	f("mail 1 was reported as sent -1 times", func(s *Sink) { s.Sent(1); come(s, 1); come(s, 1) })
	f("mail 1 was reported as sent -1 times", func(s *Sink) { // again, in a later round
		s.Sent(1)
		come(s, 1)
		if err := s.Check(); err != nil || s.Checked() != 1 {
			t.Errorf("%d checked, %v", s.Checked(), err)
		}
		come(s, 1)
	})
	whole := string(goodMail(1))
	for _, c := range [][2]string{{"Order m000000001", "Order m000000002"}, {"Order m", "order m"}, {"leave our house", "leave our home"}, {"--x--\r\n", ""}} {
		f("is not the one that was sent", func(s *Sink) {
			s.Sent(1)
			s.arrive(Mark(1)+Domain, []byte(strings.Replace(whole, c[0], c[1], 1)))
		})
	}
	f("is not the one that was sent", func(s *Sink) { s.Sent(1); s.arrive(Mark(1)+"@else.example", goodMail(1)) })
}

// A secure sink takes mail only over TLS and after a login.
func TestSinkLogin(t *testing.T) {
	config, ca, err := NewCertificate()
	if err != nil {
		t.Fatal(err)
	}
	s, stop, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	c, err := smtp.Dial(s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	refused := func(when string) {
		t.Helper()
		if err := c.Mail("hello@bench.example"); err == nil || !strings.HasPrefix(err.Error(), "502") {
			t.Errorf("MAIL %s: %v", when, err)
		}
	}
	refused("in clear text")
	if ok, _ := c.Extension("AUTH"); ok {
		t.Error("AUTH is offered in clear text")
	}
	trusted := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "127.0.0.1"}
	trusted.RootCAs.AppendCertsFromPEM(ca)
	if err := c.StartTLS(trusted); err != nil {
		t.Fatal(err)
	}
	refused("before the login")
	if err := errors.Join(c.Auth(smtp.PlainAuth("", User, Password, "127.0.0.1")), c.Mail("hello@bench.example")); err != nil {
		t.Errorf("MAIL after the login: %v", err)
	}
	if s.Most() != 1 {
		t.Errorf("%d connections at a time, want 1", s.Most())
	}
}
