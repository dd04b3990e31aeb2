package main

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net"
	"net/mail"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// A sink is an SMTP server that keeps what it takes. Its address stays the same when it goes down and comes up again.
type sink struct {
	user, password string      // "": no AUTH
	chatty         bool        // its refusals repeat what it was told
	welcome        atomic.Bool // nobody is told to come later

	hold    chan struct{} // not nil: the reply to the final dot waits until it is closed
	holding chan struct{} // gets a value for each reply that waits

	mu       sync.Mutex // guards what follows
	addr     string
	server   *smtp.Server
	listener net.Listener
	serving  chan struct{}
	received []letter
}

// A letter is a mail that a sink has accepted with 250, or was about to.
type letter struct {
	from, to  string
	messageID string
	sum       [sha256.Size]byte
	text      string
}

// up makes it listen, at 127.0.0.1.
func (s *sink) up() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != nil {
		return fmt.Errorf("it is up already")
	}
	at := s.addr
	if at == "" {
		at = "127.0.0.1:0"
	}
	ln, err := net.Listen("tcp", at)
	if err != nil {
		return err
	}
	s.addr = ln.Addr().String()
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &sinkSession{sink: s}, nil }))
	server.Domain = "sink.example"
	server.AllowInsecureAuth = true
	server.ErrorLog = log.New(io.Discard, "", 0)
	serving := make(chan struct{})
	s.server, s.listener, s.serving = server, ln, serving
	go func() {
		defer close(serving)
		_ = server.Serve(ln)
	}()
	return nil
}

// down closes it and its connections.
func (s *sink) down() {
	s.mu.Lock()
	server, ln, serving := s.server, s.listener, s.serving
	s.server = nil
	s.mu.Unlock()
	if server != nil {
		_ = server.Close()
		_ = ln.Close() // which the server may not have taken up yet
		<-serving
	}
}

func (s *sink) port() string {
	_, port, _ := net.SplitHostPort(s.addr)
	return port
}

func (s *sink) letters() []letter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.received[:len(s.received):len(s.received)]
}

// newSink is a sink that is up until the test ends.
func newSink(t testing.TB) *sink {
	t.Helper()
	s := &sink{}
	if err := s.up(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.down)
	return s
}

// A sinkSession is one connection to a sink.
type sinkSession struct {
	sink     *sink
	let      bool // authenticated
	from, to string
}

func (s *sinkSession) AuthMechanisms() []string {
	if s.sink.user == "" {
		return nil
	}
	return []string{sasl.Plain}
}

func (s *sinkSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != s.sink.user || password != s.sink.password {
			if s.sink.chatty {
				told := base64.StdEncoding.EncodeToString([]byte("\x00" + user + "\x00" + password))
				return &smtp.SMTPError{Code: 535, EnhancedCode: smtp.EnhancedCode{5, 7, 8}, Message: "no " + password + " for " + user + ", AUTH PLAIN " + told}
			}
			return smtp.ErrAuthFailed
		}
		s.let = true
		return nil
	}), nil
}

func (s *sinkSession) Mail(from string, _ *smtp.MailOptions) error {
	if s.sink.user != "" && !s.let {
		return smtp.ErrAuthRequired
	}
	s.from = from
	return nil
}

// Rcpt refuses the recipient "nobody" for good, and "later" for now.
func (s *sinkSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	switch local, _, _ := strings.Cut(to, "@"); {
	case local == "nobody":
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user"}
	case local == "later" && !s.sink.welcome.Load():
		return &smtp.SMTPError{Code: 450, EnhancedCode: smtp.EnhancedCode{4, 2, 0}, Message: "greylisted"}
	}
	s.to = to
	return nil
}

func (s *sinkSession) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	l := letter{from: s.from, to: s.to, sum: sha256.Sum256(text), text: string(text)}
	if m, err := mail.ReadMessage(strings.NewReader(l.text)); err == nil {
		l.messageID = m.Header.Get("Message-ID")
	}
	if s.sink.hold != nil {
		s.sink.holding <- struct{}{}
		<-s.sink.hold
	}
	s.sink.mu.Lock()
	defer s.sink.mu.Unlock()
	s.sink.received = append(s.sink.received, l)
	return nil
}

func (s *sinkSession) Reset()        { s.from, s.to = "", "" }
func (s *sinkSession) Logout() error { return nil }
