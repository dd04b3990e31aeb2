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
	"time"
)

// A sink is an SMTP server that accepts all mail and passes it to marks. It does as little as the protocol allows, so
// that it is not what is measured; its CPU time is printed. With a TLS configuration it requires STARTTLS, then AUTH
// PLAIN.
type sink struct {
	listener net.Listener
	secure   *tls.Config // nil: clear text, and no AUTH
	marks    *marks

	mu     sync.Mutex        // guards what follows
	open   map[net.Conn]bool // connections
	most   int               // of them at a time, since the last call of connections
	dials  int               // since then
	sample []byte            // the first mail
	closed bool

	serving sync.WaitGroup
}

const (
	sinkUser     = "bench"
	sinkPassword = "none" // startServer puts it into BENCH_SMTP_PASSWORD
	sinkPatience = time.Minute
)

var sinkLogin = []byte(base64.StdEncoding.EncodeToString([]byte("\x00" + sinkUser + "\x00" + sinkPassword)))

func newSink(m *marks, secure *tls.Config) (*sink, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the sink: %w", err)
	}
	s := &sink{listener: ln, secure: secure, marks: m, open: map[net.Conn]bool{}}
	s.serving.Go(s.serve)
	return s, nil
}

// serve ends when the listener is closed.
func (s *sink) serve() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		if s.enter(conn) {
			s.serving.Go(func() {
				c := sinkConn{sink: s, conn: conn}
				c.serve()
				_ = c.conn.Close()
				s.leave(conn)
			})
		}
	}
}

func (s *sink) enter(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = conn.Close()
		return false
	}
	s.open[conn] = true
	s.dials++
	s.most = max(s.most, len(s.open))
	return true
}

func (s *sink) leave(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, conn)
}

// connections returns the highest number of concurrent connections and the number of new ones since the last call.
func (s *sink) connections() (most, dials int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	most, dials = s.most, s.dials
	s.most, s.dials = len(s.open), 0
	return most, dials
}

// first returns the first mail that came; nil before it.
func (s *sink) first() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sample
}

// close ends all connections.
func (s *sink) close() {
	_ = s.listener.Close()
	s.mu.Lock()
	s.closed = true
	for conn := range s.open {
		_ = conn.Close()
	}
	s.mu.Unlock()
	s.serving.Wait()
}

// A sinkConn is one connection to a sink.
type sinkConn struct {
	*sink
	conn    net.Conn
	r       *bufio.Reader
	w       *bufio.Writer
	safe    bool // TLS is on
	in      bool // logged in
	rcpt    []byte
	message []byte
}

var errBye = errors.New("the client has said goodbye")

func (c *sinkConn) serve() {
	c.r, c.w = bufio.NewReader(c.conn), bufio.NewWriter(c.conn)
	err := c.say("220 sink.example ESMTP\r\n")
	for err == nil {
		err = c.command()
	}
}

// say answers. If a client has sent several commands at once, the answers are flushed together.
func (c *sinkConn) say(reply string) error {
	if _, err := c.w.WriteString(reply); err != nil {
		return err
	}
	if c.r.Buffered() > 0 {
		return nil
	}
	return c.w.Flush()
}

func (c *sinkConn) line() ([]byte, error) {
	if err := c.conn.SetReadDeadline(time.Now().Add(sinkPatience)); err != nil {
		return nil, err
	}
	line, err := c.r.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(line, []byte("\r\n")), nil
}

const takenReply = "250 2.0.0 taken\r\n"

func (c *sinkConn) command() error {
	line, err := c.line()
	if err != nil {
		return err
	}
	verb, rest, _ := bytes.Cut(line, []byte(" "))
	switch string(bytes.ToUpper(verb)) {
	case "EHLO":
		switch {
		case c.secure == nil:
			return c.say("250-sink.example\r\n250-PIPELINING\r\n250 SIZE 10485760\r\n")
		case !c.safe:
			return c.say("250-sink.example\r\n250-PIPELINING\r\n250-STARTTLS\r\n250 SIZE 10485760\r\n")
		}
		return c.say("250-sink.example\r\n250-PIPELINING\r\n250-AUTH PLAIN\r\n250 SIZE 10485760\r\n")
	case "STARTTLS":
		return c.startTLS()
	case "AUTH":
		c.in = c.safe && bytes.Equal(rest, append([]byte("PLAIN "), sinkLogin...))
		if !c.in {
			return c.say("535 5.7.8 no\r\n")
		}
		return c.say("235 2.7.0 welcome\r\n")
	case "MAIL":
		if c.secure != nil && !c.in {
			return c.say("530 5.7.0 log in first\r\n")
		}
		c.rcpt = c.rcpt[:0]
		return c.say(takenReply)
	case "RCPT":
		_, address, _ := bytes.Cut(rest, []byte("<"))
		address, _, _ = bytes.Cut(address, []byte(">"))
		c.rcpt = append(c.rcpt[:0], address...)
		return c.say(takenReply)
	case "DATA":
		return c.data()
	case "RSET", "NOOP":
		return c.say(takenReply)
	case "QUIT":
		return errors.Join(c.say("221 2.0.0 bye\r\n"), errBye)
	}
	return c.say("500 5.5.2 what\r\n")
}

func (c *sinkConn) startTLS() error {
	if c.secure == nil || c.safe {
		return c.say("503 5.5.1 not now\r\n")
	}
	if err := c.say("220 2.0.0 go on\r\n"); err != nil {
		return err
	}
	conn := tls.Server(c.conn, c.secure)
	if err := conn.Handshake(); err != nil {
		return err
	}
	c.conn, c.safe = conn, true
	c.r.Reset(conn)
	c.w.Reset(conn)
	return nil
}

// data reads a message and passes it to marks before it answers.
func (c *sinkConn) data() error {
	if len(c.rcpt) == 0 {
		return c.say("503 5.5.1 for whom\r\n")
	}
	if err := c.say("354 go on\r\n"); err != nil {
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
	c.keep()
	c.marks.arrive(c.rcpt, c.message)
	return c.say(takenReply)
}

// keep stores the first message.
func (c *sinkConn) keep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sample == nil {
		c.sample = bytes.Clone(c.message)
	}
}
