package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"sync"
)

// A sink is an SMTP server that accepts all mail and passes it to marks. It does as little as the protocol allows, so
// that it is not what is measured: over go-smtp's server, a mail of the bare mailer takes 0.33 ms of CPU time (sink
// included) instead of 0.27 ms. With a TLS configuration the sink requires STARTTLS, then AUTH PLAIN.
type sink struct {
	addr   string
	secure *tls.Config // nil: clear text, and no AUTH
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

var sinkLogin = "AUTH PLAIN " + base64.StdEncoding.EncodeToString([]byte("\x00"+sinkUser+"\x00"+sinkPassword))

// newSink starts a sink, which is closed at the end of the command. By then all clients have ended.
func (b *bench) newSink(m *marks, secure *tls.Config) (*sink, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the sink: %w", err)
	}
	b.atEnd(ln.Close)
	s := &sink{addr: ln.Addr().String(), secure: secure, marks: m}
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return // it is closed
			}
			go s.serve(conn)
		}
	}()
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

// serve serves one connection until it ends.
func (s *sink) serve(conn net.Conn) {
	s.mu.Lock()
	s.open++
	s.most = max(s.most, s.open)
	s.mu.Unlock()
	c := &sinkConn{sink: s, conn: conn, r: bufio.NewReader(conn), w: bufio.NewWriter(conn)}
	err := c.say("220 sink.example ESMTP")
	for err == nil {
		err = c.command()
	}
	_ = c.conn.Close()
	s.mu.Lock()
	s.open--
	s.mu.Unlock()
}

// A sinkConn is one connection to a sink.
type sinkConn struct {
	*sink
	conn    net.Conn
	r       *bufio.Reader
	w       *bufio.Writer
	safe    bool // TLS is on
	in      bool // logged in
	rcpt    string
	message []byte
}

var errBye = errors.New("the client has said goodbye")

// say answers. If a client has sent several commands at once, the answers are flushed together.
func (c *sinkConn) say(reply string) error {
	_, err := c.w.WriteString(reply + "\r\n")
	if err == nil && c.r.Buffered() == 0 {
		err = c.w.Flush()
	}
	return err
}

// command reads and answers one command.
func (c *sinkConn) command() error {
	text, err := c.r.ReadSlice('\n')
	if err != nil {
		return err
	}
	line := bytes.TrimSuffix(text, []byte("\r\n"))
	verb, _, _ := bytes.Cut(line, []byte(" "))
	switch string(verb) {
	case "EHLO":
		extension := "250-PIPELINING\r\n"
		if c.secure != nil && !c.safe {
			extension += "250-STARTTLS\r\n"
		} else if c.safe {
			extension += "250-AUTH PLAIN\r\n"
		}
		return c.say("250-sink.example\r\n" + extension + "250 SIZE 10485760")
	case "STARTTLS":
		return c.startTLS()
	case "AUTH":
		if c.in = c.safe && string(line) == sinkLogin; !c.in {
			return c.say("535 5.7.8 no")
		}
		return c.say("235 2.7.0 welcome")
	case "MAIL":
		if c.secure != nil && !c.in {
			return c.say("530 5.7.0 log in first")
		}
		c.rcpt = ""
	case "RCPT":
		_, address, _ := bytes.Cut(line, []byte("<"))
		address, _, _ = bytes.Cut(address, []byte(">"))
		c.rcpt = string(address)
	case "DATA":
		if c.rcpt == "" {
			return c.say("503 5.5.1 for whom")
		}
		if err := c.data(); err != nil {
			return err
		}
	case "QUIT":
		return errors.Join(c.say("221 2.0.0 bye"), errBye)
	case "RSET", "NOOP":
	default:
		return c.say("500 5.5.2 what")
	}
	return c.say("250 2.0.0 taken")
}

func (c *sinkConn) startTLS() error {
	if c.secure == nil || c.safe {
		return c.say("503 5.5.1 not now")
	}
	if err := c.say("220 2.0.0 go on"); err != nil {
		return err
	}
	conn := tls.Server(c.conn, c.secure)
	c.conn, c.safe = conn, true
	c.r.Reset(conn)
	c.w.Reset(conn)
	return conn.Handshake()
}

// data reads a message and passes it to marks.
func (c *sinkConn) data() error {
	if err := c.say("354 go on"); err != nil {
		return err
	}
	c.message = c.message[:0]
	for {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if line[0] == '.' {
			if line = line[1:]; string(line) == "\r\n" {
				break
			}
		}
		c.message = append(c.message, line...)
	}
	c.mu.Lock()
	if c.sample == nil {
		c.sample = bytes.Clone(c.message)
	}
	c.mu.Unlock()
	c.marks.arrive(c.rcpt, c.message)
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
