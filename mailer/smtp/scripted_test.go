package smtp_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"fingerpost/mailer/smtp"
)

// A scripted is an SMTP server that plays scripts: the first connection the first one, and so on; the last one is
// repeated. It ends with the test.
type scripted struct {
	t        testing.TB
	listener net.Listener
	tls      *tls.Config // for secure
	scripts  [][]turn
	over     chan struct{} // the test

	mu    sync.Mutex
	n     int      // connections so far
	now   int      // open
	most  int      // open at the same time
	heard []string // commands and messages, over all connections
}

// A talk is one connection.
type talk struct {
	*scripted
	conn net.Conn
	r    *bufio.Reader
	last string // command

	pipeline bool // PIPELINING is offered in each answer to EHLO
}

// A turn is the server's next action. False ends the connection.
type turn func(*talk) bool

func newScripted(t testing.TB, config *tls.Config, scripts ...[]turn) *scripted {
	t.Helper()
	return newScriptedAt(t, "127.0.0.1:0", config, scripts...)
}

func newScriptedAt(t testing.TB, address string, config *tls.Config, scripts ...[]turn) *scripted {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s := &scripted{t: t, listener: l, tls: config, scripts: scripts, over: make(chan struct{})}
	var all sync.WaitGroup
	var conns sync.Map
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Store(c, nil)
			all.Go(func() { s.play(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		close(s.over)
		conns.Range(func(c, _ any) bool { _ = c.(net.Conn).Close(); return true })
		all.Wait()
	})
	return s
}

func (s *scripted) play(c net.Conn) {
	defer c.Close()
	s.mu.Lock()
	script := s.scripts[min(s.n, len(s.scripts)-1)]
	s.n++
	s.now++
	s.most = max(s.most, s.now)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.now--
		s.mu.Unlock()
	}()
	k := &talk{scripted: s, conn: c, r: bufio.NewReader(c)}
	for _, turn := range script {
		if !turn(k) {
			return
		}
	}
}

// server returns the Server for the scripted one.
func (s *scripted) server() smtp.Server {
	a := s.listener.Addr().(*net.TCPAddr)
	return smtp.Server{Host: a.IP.String(), Port: a.Port}
}

func (s *scripted) connections() (all, open, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n, s.now, s.most
}

// got returns what the server has received, joined by LF.
func (s *scripted) got() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.heard, "\n")
}

func (s *scripted) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = append(s.heard, what)
}

// offerPipelining comes first in a script.
func offerPipelining(k *talk) bool { k.pipeline = true; return true }

// say sends lines.
func say(lines ...string) turn {
	return func(k *talk) bool {
		all := lines
		if k.pipeline && strings.HasPrefix(k.last, "EHLO") && strings.HasPrefix(lines[0], "250") {
			all = append([]string{"250-peer.example", "250-PIPELINING"}, lines...)
		}
		_, err := k.conn.Write([]byte(strings.Join(all, "\r\n") + "\r\n"))
		return err == nil
	}
}

// hear reads a command, which must begin with prefix.
func hear(prefix string) turn {
	return func(k *talk) bool {
		line, err := k.r.ReadString('\n')
		if err != nil {
			return false
		}
		line = strings.TrimRight(line, "\r\n")
		k.last = line
		k.note(line)
		if !strings.HasPrefix(line, prefix) {
			k.note("WANTED " + prefix)
			return false
		}
		return true
	}
}

// hear64 reads an answer to a challenge and records it decoded.
func hear64(k *talk) bool {
	line, err := k.r.ReadString('\n')
	if err != nil {
		return false
	}
	b, err := base64.StdEncoding.DecodeString(strings.TrimRight(line, "\r\n"))
	k.note(string(b))
	return err == nil
}

// message reads up to the final dot.
func message(k *talk) bool {
	var b bytes.Buffer
	for {
		line, err := k.r.ReadString('\n')
		if err != nil {
			k.note(b.String())
			return false
		}
		if line == ".\r\n" {
			k.note(b.String())
			return true
		}
		b.WriteString(line)
	}
}

// part reads some bytes of a message.
func part(k *talk) bool {
	b := make([]byte, 10)
	_, err := k.r.Read(b)
	return err == nil
}

// secure does a TLS handshake.
func secure(k *talk) bool {
	c := tls.Server(k.conn, k.tls)
	if c.Handshake() != nil {
		return false
	}
	k.conn, k.r = c, bufio.NewReader(c)
	return true
}

// silence lasts until the client disconnects.
func silence(k *talk) bool {
	b := make([]byte, 4096)
	for {
		if _, err := k.r.Read(b); err != nil {
			return false
		}
	}
}

// stall neither reads nor writes.
func stall(k *talk) bool { <-k.over; return false }

// reset ends the connection with an RST.
func reset(k *talk) bool {
	if tcp, ok := k.conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	return false
}

// hangUp closes.
func hangUp(*talk) bool { return false }

// wait waits for a channel to be closed.
func wait(ch <-chan struct{}) turn {
	return func(k *talk) bool {
		select {
		case <-ch:
			return true
		case <-k.over:
			return false
		}
	}
}

// tell closes a channel.
func tell(ch chan struct{}) turn {
	return func(*talk) bool { close(ch); return true }
}

// flood sends a text until the client stops reading.
func flood(text string) turn {
	block := []byte(strings.Repeat(text, 1+4096/len(text)))
	return func(k *talk) bool {
		for {
			if _, err := k.conn.Write(block); err != nil {
				return false
			}
		}
	}
}

// trickle sends a text forever, a byte at a time.
func trickle(text string, every time.Duration) turn {
	return func(k *talk) bool {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for i := 0; ; i++ {
			if _, err := k.conn.Write([]byte{text[i%len(text)]}); err != nil {
				return false
			}
			<-tick.C
		}
	}
}

// script joins turns and lists of them.
func script(parts ...any) (all []turn) {
	for _, p := range parts {
		switch p := p.(type) {
		case []turn:
			all = append(all, p...)
		case turn:
			all = append(all, p)
		case func(*talk) bool:
			all = append(all, p)
		case string: // a command and the reply to it, or a line to say
			if command, reply, ok := strings.Cut(p, " -> "); ok {
				all = append(all, hear(command), say(strings.Split(reply, "|")...))
			} else {
				all = append(all, say(strings.Split(p, "|")...))
			}
		}
	}
	return all
}

// The parts of scripts.
var (
	greet      = script("220 peer.example ESMTP", "EHLO -> 250-peer.example|250 SIZE 1000000")
	plain      = script("220 peer.example ESMTP", "EHLO -> 250 peer.example") // and no SIZE
	greetTLS   = script("220 peer.example ESMTP", "EHLO -> 250-peer.example|250-SIZE 1000000|250 STARTTLS")
	upgrade    = script("STARTTLS -> 220 go", secure)
	offerAuth  = script("EHLO -> 250-peer.example|250 AUTH PLAIN LOGIN")
	login      = script("AUTH PLAIN -> 235 welcome")
	envelope   = script("MAIL -> 250 ok", "RCPT -> 250 ok", "DATA -> 354 go")
	takes      = script(envelope, message, "250 2.0.0 queued as 4711")
	greetLogin = script("220 peer.example ESMTP", "EHLO -> 250-peer.example|250 AUTH PLAIN")
)
