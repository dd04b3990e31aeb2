package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"sync"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// A sink is an SMTP server that accepts all mail and passes it to marks. With a TLS configuration it requires STARTTLS,
// then AUTH PLAIN.
type sink struct {
	addr   string
	secure bool
	marks  *marks

	mu     sync.Mutex // guards what follows
	open   int        // connections
	most   int        // of them at a time
	sample []byte     // the first mail
}

const (
	sinkUser     = "bench"
	sinkPassword = "none" // fingerpost has it in BENCH_SMTP_PASSWORD
)

// newSink starts a sink, which is closed at the end of the command.
func (b *bench) newSink(m *marks, secure *tls.Config) (*sink, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the sink: %w", err)
	}
	s := &sink{addr: ln.Addr().String(), secure: secure != nil, marks: m}
	server := smtp.NewServer(smtp.BackendFunc(s.session))
	server.TLSConfig, server.ErrorLog = secure, log.New(io.Discard, "", 0)
	b.atEnd(server.Close)
	go func() { _ = server.Serve(ln) }() // ends with the listener
	return s, nil
}

// connections returns the highest number of concurrent connections.
func (s *sink) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}

// first returns the first mail that came; nil before it.
func (s *sink) first() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sample
}

func (s *sink) session(*smtp.Conn) (smtp.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open++
	s.most = max(s.most, s.open)
	return &sinkSession{sink: s}, nil
}

// A sinkSession is one connection to a sink.
type sinkSession struct {
	*sink
	in   bool // logged in
	rcpt string
}

func (c *sinkSession) AuthMechanisms() []string { return []string{sasl.Plain} }

func (c *sinkSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if c.in = user == sinkUser && password == sinkPassword; !c.in {
			return smtp.ErrAuthFailed
		}
		return nil
	}), nil
}

func (c *sinkSession) Mail(string, *smtp.MailOptions) error {
	if c.secure && !c.in {
		return smtp.ErrAuthRequired
	}
	return nil
}

func (c *sinkSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	c.rcpt = to
	return nil
}

// Data passes a message to marks before it is answered.
func (c *sinkSession) Data(r io.Reader) error {
	message, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	c.mu.Lock()
	if c.sample == nil {
		c.sample = message
	}
	c.mu.Unlock()
	c.marks.arrive(c.rcpt, message)
	return nil
}

func (c *sinkSession) Reset() { c.rcpt = "" }

func (c *sinkSession) Logout() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	return nil
}

// A deadServer is an address that accepts no mail: it refuses connections, or, after hang, accepts them and stays
// silent. It has a loopback address of its own, so that no other process gets its port.
type deadServer struct {
	address  string
	listener net.Listener // nil while it refuses connections
}

// newDeadServer returns a dead server. Each has a number of its own.
func newDeadServer(number int) (*deadServer, error) {
	ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.%d:0", 100+number))
	if err != nil {
		return nil, fmt.Errorf("reserve the address of a dead server: %w", err)
	}
	return &deadServer{address: ln.Addr().String()}, ln.Close()
}

// hang makes it accept connections without answering.
func (d *deadServer) hang() (err error) {
	d.listener, err = net.Listen("tcp", d.address)
	return err
}

func (d *deadServer) close() error {
	if d.listener == nil {
		return nil
	}
	return d.listener.Close()
}
