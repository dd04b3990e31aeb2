package mailer_test

import (
	"io"
	"log"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	gosmtp "github.com/emersion/go-smtp"
)

// A sink is an SMTP server that a test controls. It listens on a loopback address in clear text, where credentials are
// allowed.
type sink struct {
	server   *gosmtp.Server
	listener net.Listener

	mu       sync.Mutex
	password string                       // the account's; "" lets everybody in
	answer   func(n int, m arrival) error // to the final dot of the nth mail, nil to take it
	sender   func(from string) error
	rcpt     func(to string) error
	login    func() // called with the lock held, once
	dials    int
	logins   int
	offered  []arrival // whose final dot was seen
	taken    []arrival
	busy     int // between MAIL and the answer to the dot
	most     int // of busy
}

// An arrival is a mail at a sink.
type arrival struct {
	from, to, message string
}

const sinkUser = "hello@acme.example"

func newSink(t testing.TB) *sink {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return newSinkOn(t, l)
}

func newSinkOn(t testing.TB, l net.Listener) *sink {
	k := &sink{listener: l}
	k.server = gosmtp.NewServer(gosmtp.BackendFunc(func(c *gosmtp.Conn) (gosmtp.Session, error) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.dials++
		return &sinkSession{sink: k, conn: c, in: k.password == ""}, nil
	}))
	k.server.Domain, k.server.AllowInsecureAuth, k.server.MaxMessageBytes = "sink.example", true, 4<<20
	k.server.ReadTimeout, k.server.WriteTimeout = time.Minute, time.Minute
	k.server.ErrorLog = log.New(io.Discard, "", 0)
	done := make(chan struct{})
	go func() { defer close(done); _ = k.server.Serve(l) }()
	t.Cleanup(func() { _ = k.server.Close(); <-done })
	return k
}

// refusingPort is a port at which nobody listens. The system gives ports below 1024 to nobody who asks for any port, so
// it cannot become the port of another sink, as the port of a closed one can.
const refusingPort = 1

func (k *sink) port() int { return k.listener.Addr().(*net.TCPAddr).Port }

func (k *sink) set(f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f()
}

// answers sets the replies to the final dot.
func (k *sink) answers(f func(n int, m arrival) error) { k.set(func() { k.answer = f }) }

func (k *sink) mails() []arrival {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]arrival(nil), k.taken...)
}

func (k *sink) count() (dials, logins, offered int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.dials, k.logins, len(k.offered)
}

type sinkSession struct {
	*sink
	conn *gosmtp.Conn
	in   bool
	mail arrival
	busy bool
}

func (s *sinkSession) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *sinkSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, username, password string) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.logins++
		if s.login != nil {
			s.login()
			s.login = nil
		}
		if username != sinkUser || password != s.password {
			return gosmtp.ErrAuthFailed
		}
		s.in = true
		return nil
	}), nil
}

func (s *sinkSession) Mail(from string, _ *gosmtp.MailOptions) error {
	if !s.in {
		return gosmtp.ErrAuthRequired
	}
	s.mu.Lock()
	f := s.sender
	s.mu.Unlock()
	if f != nil {
		if err := f(from); err != nil {
			return err
		}
	}
	s.mail = arrival{from: from}
	s.hurry(1)
	return nil
}

func (s *sinkSession) hurry(d int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if (d > 0) == s.busy {
		return
	}
	s.busy = d > 0
	s.sink.busy += d
	s.most = max(s.most, s.sink.busy)
}

func (s *sinkSession) Rcpt(to string, _ *gosmtp.RcptOptions) error {
	s.mail.to = to
	s.mu.Lock()
	f := s.rcpt
	s.mu.Unlock()
	if f != nil {
		return f(to)
	}
	return nil
}

func (s *sinkSession) Data(r io.Reader) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.mail.message = string(b)
	s.mu.Lock()
	s.offered = append(s.offered, s.mail)
	f, n := s.answer, len(s.offered)
	s.mu.Unlock()
	if f != nil {
		if err = f(n, s.mail); err == errHangUp {
			_ = s.conn.Conn().Close()
			s.hurry(-1)
			return err
		}
	}
	s.hurry(-1)
	if err == nil {
		s.mu.Lock()
		s.taken = append(s.taken, s.mail)
		s.mu.Unlock()
	}
	return err
}

func (s *sinkSession) Reset()        { s.hurry(-1) }
func (s *sinkSession) Logout() error { s.hurry(-1); return nil }

var (
	errGreylisted = &gosmtp.SMTPError{Code: 451, EnhancedCode: gosmtp.EnhancedCode{4, 7, 1}, Message: "come back later"}
	errRejected   = &gosmtp.SMTPError{Code: 554, EnhancedCode: gosmtp.EnhancedCode{5, 6, 0}, Message: "we do not like it"}
	errNobody     = &gosmtp.SMTPError{Code: 550, EnhancedCode: gosmtp.EnhancedCode{5, 1, 1}, Message: "no such user"}
	// errHangUp closes the connection instead of answering.
	errHangUp = &gosmtp.SMTPError{Code: 421, Message: "hang up"}
)
