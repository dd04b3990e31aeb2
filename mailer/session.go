package mailer

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"net/textproto"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"fingerpost/resolver/catalog"
)

// A session is a connection to a server that has said hello, with TLS and AUTH done where they are to be. net/smtp gives
// the ways to log in; its Client is not used: it misses keywords in lower case, hides what is wrong with EHLO behind a
// HELO, and reads replies at quadratic cost.
type session struct {
	smtpConn
	wire *wire
	conn net.Conn // wire, or TLS over it

	secure   bool     // conn is TLS
	startTLS bool     // offered
	auth     []string // mechanisms offered, in upper case
	maxSize  int64    // RFC 1870; 0 for none told
	pipeline bool     // RFC 2920: takes several commands at a time

	used  int         // transactions begun
	heard time.Time   // when the last one of them was over
	reset bool        // the last one was given up: RSET comes first
	lost  bool        // it is not known what the server waits for
	idle  *time.Timer // ends it where nobody needs it again; nil before it was idle
}

// An attempt is what Send does, and how far it has come.
type attempt struct {
	*Transport
	ctx     context.Context
	server  Server
	env     Envelope
	message []byte
	alone   bool // the context rules to the end, see SendAlone

	session  *session // the last one, for what classify asks
	stage    Stage
	looked   bool   // the host has an address
	accepted string // the reply to the final dot
	steps    []Step
	mark     time.Time // the end of the last step; zero before the first
}

// step ends a part of the attempt.
func (a *attempt) step(name string) {
	now := time.Now()
	a.steps = append(a.steps, Step{name, now.Sub(a.mark)})
	a.mark = now
}

// stepName is what the SMTP test calls a stage (mailer/README.md). The first hello counts to what it comes after.
func (a *attempt) stepName() string {
	switch a.stage {
	case StageDial, StageGreeting, StageEHLO:
		if !a.looked {
			return "dns"
		}
		if a.session != nil && a.session.secure {
			return "tls"
		}
		return "connect"
	case StageTLS, StageSTARTTLS:
		return "tls"
	case StageAuth:
		return "auth"
	}
	return "send"
}

// open makes a session. Where it fails, the session is nil if there is nothing to be closed.
func (a *attempt) open() (*session, error) {
	a.stage, a.mark, a.steps, a.session, a.looked = StageDial, time.Now(), nil, nil, false
	conn, err := a.dial()
	if err != nil {
		return nil, err
	}
	w := &wire{Conn: conn, left: maxSessionBytes}
	s := &session{smtpConn: newSMTPConn(w), wire: w, conn: w}
	a.session = s
	defer w.watch(a.ctx)()
	if a.server.mode() == tlsImplicit {
		a.step("connect")
		a.stage = StageTLS
		if err := a.secure(s); err != nil {
			return s, err
		}
	}
	if err := a.greeting(s); err != nil {
		return s, err
	}
	a.step(a.stepName())
	if a.server.mode() == tlsStart {
		a.stage = StageSTARTTLS
		if err := a.starttls(s); err != nil {
			return s, err
		}
		a.step("tls")
	}
	if a.server.Username != "" {
		a.stage = StageAuth
		w.within(a.limits.Command)
		if err := s.login(a.server); err != nil {
			return s, err
		}
		a.step("auth")
	}
	return s, nil
}

// dial connects. The look-up ends where the guard is first asked, or there is no connection.
func (a *attempt) dial() (net.Conn, error) {
	host, err := a.server.name()
	if err != nil { // nobody saves such a host, and no name server knows it
		return nil, &net.DNSError{Err: "no such host", Name: a.server.Host, IsNotFound: true}
	}
	var looked atomic.Int64 // several addresses are tried at the same time
	d := net.Dialer{Timeout: a.limits.Connect, Resolver: a.resolver,
		Control: func(_, address string, _ syscall.RawConn) error {
			looked.CompareAndSwap(0, int64(time.Since(a.mark)))
			return a.guard.check(address)
		}}
	conn, err := d.DialContext(a.ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(a.server.port())))
	took := time.Duration(looked.Load())
	if a.looked = took != 0; a.looked { // else there was nothing to connect to
		a.steps, a.mark = append(a.steps, Step{"dns", took}), a.mark.Add(took)
	}
	return conn, err
}

// secure does the TLS handshake.
func (a *attempt) secure(s *session) error {
	s.wire.within(a.limits.TLS)
	host, err := a.server.name()
	if err != nil {
		return err
	}
	config := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	if a.server.CA != "" {
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM([]byte(a.server.CA)) // with none in it, no certificate is good
	}
	conn := tls.Client(s.wire, config)
	if err := conn.Handshake(); err != nil {
		return err
	}
	s.conn, s.smtpConn, s.secure = conn, newSMTPConn(conn), true
	return nil
}

func (a *attempt) starttls(s *session) error {
	if !s.startTLS {
		return errNoSTARTTLS
	}
	s.wire.within(a.limits.Command)
	switch code, err := s.command("STARTTLS"); {
	case err != nil:
		return err
	case code >= 400:
		return s.refusal(code)
	case code != 220 || s.r.Buffered() > 0: // whoever sits in between may have put more behind it (RFC 3207 6)
		return errNoReply
	}
	if err := a.secure(s); err != nil {
		return err
	}
	return a.hello(s)
}

// greeting waits for the server to speak first, and says hello.
func (a *attempt) greeting(s *session) error {
	a.stage = StageGreeting
	s.wire.within(a.limits.Greeting)
	switch code, err := s.reply(); {
	case err != nil:
		return err
	case code >= 400:
		return s.refusal(code)
	case code != 220:
		return errNoReply
	}
	a.stage = StageEHLO
	return a.hello(s)
}

// hello says EHLO, or HELO to a server that does not know it, and notes what the server offers.
func (a *attempt) hello(s *session) error {
	s.wire.within(a.limits.Command)
	s.startTLS, s.auth, s.maxSize, s.pipeline = false, nil, 0, false
	name := a.helloName(s.wire.LocalAddr())
	code, err := s.command("EHLO ", name)
	if err == nil && (code == 500 || code == 502 || code == 504) {
		code, err = s.command("HELO ", name)
		s.text = s.text[:0]
	}
	switch {
	case err != nil:
		return err
	case code >= 400:
		return s.refusal(code)
	case code != 250:
		return errNoReply
	}
	_, offers, _ := bytes.Cut(s.text, []byte{'\n'})
	for line := range strings.SplitSeq(strings.ToUpper(string(offers)), "\n") {
		keyword, rest, _ := strings.Cut(strings.Replace(line, "AUTH=", "AUTH ", 1), " ") // the = is from before RFC 2554
		switch keyword {
		case "STARTTLS":
			s.startTLS = true
		case "AUTH":
			s.auth = append(s.auth, strings.Fields(rest)...)
		case "PIPELINING":
			s.pipeline = true
		case "SIZE":
			s.maxSize, _ = strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
		}
	}
	return nil
}

// helloName is the name to greet with: the configured one, else this host's where it has a full one, else its address
// as the server sees it (RFC 5321 4.1.3).
func (t *Transport) helloName(local net.Addr) string {
	host := t.hello
	if host == "" {
		host, _ = os.Hostname()
		if !strings.Contains(host, ".") {
			host = ""
		}
	}
	if name, err := catalog.ParseHost(host); host != "" && err == nil {
		return name
	}
	ap, err := netip.ParseAddrPort(local.String())
	switch a := ap.Addr().Unmap().WithZone(""); {
	case err != nil:
		return "localhost"
	case a.Is4():
		return "[" + a.String() + "]"
	default:
		return "[IPv6:" + a.String() + "]"
	}
}

// inStep reports whether the server waits for a command after err: it has refused one, or was not asked at all.
func (s *session) inStep(err error) bool {
	var refusal *textproto.Error
	if errors.As(err, &refusal) {
		return refusal.Code != 421 && !s.lost
	}
	return errors.Is(err, errNoSTARTTLS) || errors.Is(err, errClearAuth) || errors.Is(err, errNoAuth) || errors.Is(err, errTooLarge)
}

// reusable reports whether a session can take another mail after a transaction that ended with err at a stage.
func (s *session) reusable(stage Stage, err error) bool {
	if err != nil {
		inside := []Stage{StageMail, StageRcpt, StageData, StageEOD}
		if !s.inStep(err) || !slices.Contains(inside, stage) {
			return false
		}
		s.reset = true
	}
	s.heard = time.Now()
	return s.used < maxMails && s.r.Buffered() == 0 && s.wire.left > maxSessionBytes/2
}

// quit says goodbye and closes. It takes at most the time given, and nobody asks how it went.
func (s *session) quit(within time.Duration) {
	s.wire.within(within)
	_, _ = s.command("QUIT")
	_ = s.conn.Close()
	s.abandon()
}

// abandon closes without a word.
func (s *session) abandon() { _ = s.wire.Close() }
