package smtp_test

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	gosmtp "github.com/emersion/go-smtp"

	"fingerpost/mailer/smtp"
)

// The account of all test servers.
const (
	testUser     = "hello@acme.example"
	testPassword = "sentinel-Hunter2-pass"
)

// A peer is a go-smtp server with an account, and the mail that it has accepted.
type peer struct {
	*gosmtp.Server
	listener net.Listener

	mu    sync.Mutex
	mails []peerMail
	dials int
}

type peerMail struct {
	from, to string
	message  string
}

// newPeer starts a server. With config it offers STARTTLS, or speaks TLS from the first byte if implicit; it then
// requires a login.
func newPeer(t testing.TB, config *tls.Config, implicit bool) *peer {
	t.Helper()
	p := &peer{}
	p.Server = gosmtp.NewServer(gosmtp.BackendFunc(func(*gosmtp.Conn) (gosmtp.Session, error) {
		return &peerSession{peer: p, anonymous: config == nil}, nil
	}))
	p.Domain, p.MaxMessageBytes, p.ReadTimeout, p.WriteTimeout = "peer.example", 4<<20, time.Minute, time.Minute
	p.EnableSMTPUTF8 = true // so that a parameter would be seen to be added
	p.ErrorLog = log.New(io.Discard, "", 0)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.listener = &countingListener{l, p}
	served := p.listener
	switch {
	case implicit:
		served = tls.NewListener(p.listener, config)
	case config != nil:
		p.TLSConfig = config
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = p.Serve(served) }()
	t.Cleanup(func() { _ = p.Close(); <-done })
	return p
}

type countingListener struct {
	net.Listener
	peer *peer
}

func (l *countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.peer.mu.Lock()
		l.peer.dials++
		l.peer.mu.Unlock()
	}
	return c, err
}

// server returns the Server for the peer, with its account unless it needs none.
func (p *peer) server() smtp.Server {
	a := p.listener.Addr().(*net.TCPAddr)
	return smtp.Server{Host: a.IP.String(), Port: a.Port}
}

func (p *peer) got() (mails []peerMail, dials int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append(mails, p.mails...), p.dials
}

type peerSession struct {
	*peer
	anonymous bool
	mail      peerMail
}

func (s *peerSession) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *peerSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, username, password string) error {
		if username != testUser || password != testPassword {
			return gosmtp.ErrAuthFailed
		}
		s.anonymous = true
		return nil
	}), nil
}

func (s *peerSession) Mail(from string, o *gosmtp.MailOptions) error {
	if !s.anonymous {
		return gosmtp.ErrAuthRequired
	}
	if o.Body != "" || o.UTF8 || o.Size != 0 {
		return &gosmtp.SMTPError{Code: 555, EnhancedCode: gosmtp.EnhancedCode{5, 5, 4}, Message: "a parameter"}
	}
	s.mail = peerMail{from: from}
	return nil
}

func (s *peerSession) Rcpt(to string, _ *gosmtp.RcptOptions) error {
	if to == "nobody@peer.example" {
		return &gosmtp.SMTPError{Code: 550, EnhancedCode: gosmtp.EnhancedCode{5, 1, 1}, Message: "no such user"}
	}
	s.mail.to = to
	return nil
}

func (s *peerSession) Data(r io.Reader) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.mail.message = string(b)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mails = append(s.mails, s.mail)
	return nil
}

func (s *peerSession) Reset()        {}
func (s *peerSession) Logout() error { return nil }
