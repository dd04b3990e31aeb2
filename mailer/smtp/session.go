package smtp

import (
	"bytes"
	"cmp"
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

	gosmtp "github.com/emersion/go-smtp"

	"fingerpost/mailer/oauth"
	"fingerpost/resolver/hostname"
	"fingerpost/resolver/trace"
)

// A session is a connection to a server that has said hello, with TLS and AUTH done if the Server asks for them.
type session struct {
	line
	wire   *wire
	client *gosmtp.Client // talks over line; nil before the greeting

	secure   bool     // line is TLS
	startTLS bool     // offered
	auth     []string // offered mechanisms, in upper case
	maxSize  int64    // RFC 1870; 0 if the server names none
	token    string   // that it was logged in with, which no reply may show; "" for none

	used  int         // transactions begun
	reset bool        // the last one was refused, so RSET comes first
	idle  time.Time   // since when no mail uses it
	timer *time.Timer // ends it if no mail uses it again; nil before it was idle
}

// An attempt is one call of Send, and its progress.
type attempt struct {
	*Transport
	ctx     context.Context
	server  Server
	env     Envelope
	message []byte
	alone   bool // the context applies to the end, see SendAlone

	host     string   // see Server.name
	session  *session // the last one, for classify
	stage    Stage
	accepted string // the reply to the final dot
	steps    []Step // those that have ended
	tell     func(Step)
	step     string      // the current one, see Step
	begun    time.Time   // when it began; zero before the first
	span     *trace.Span // of the stage, if the context has one
}

// begin ends the step that the attempt is in, if any, and begins the next one.
func (a *attempt) begin(step string) {
	now := time.Now()
	if a.step != "" {
		ended := Step{a.step, now.Sub(a.begun)}
		a.steps = append(a.steps, ended)
		a.tell(ended)
	}
	a.step, a.begun = step, now
	a.trace(step, now)
}

// trace ends the span of the stage, and begins that of the next one. "" and send, which has stages of its own, have none.
func (a *attempt) trace(stage string, now time.Time) {
	a.span.EndAt(now)
	a.span = nil
	if parent := trace.From(a.ctx); parent != nil && stage != "" && stage != "send" {
		a.span = parent.ChildAt("smtp."+stage, now).Calls()
		a.span.Set("server.address", a.server.Host)
	}
}

// open opens a session. On failure the session is nil if there is none to close.
func (a *attempt) open() (*session, error) {
	a.stage, a.steps, a.step, a.session = StageDial, nil, "", nil
	a.begin("dns")
	conn, err := a.dial()
	if err != nil {
		return nil, err
	}
	w := &wire{Conn: conn, left: maxSessionBytes}
	s := &session{line: newLine(w), wire: w}
	a.session = s
	defer w.watch(a.ctx)()
	if a.server.mode() == tlsImplicit {
		a.begin("tls")
		a.stage = StageTLS
		if err := a.secure(s); err != nil {
			return s, err
		}
	}
	if err := a.greeting(s); err != nil {
		return s, err
	}
	if a.server.mode() == tlsStart {
		a.begin("tls")
		a.stage = StageSTARTTLS
		if err := a.starttls(s); err != nil {
			return s, err
		}
	}
	if a.server.Username != "" {
		if err := a.login(s); err != nil {
			return s, err
		}
	}
	return s, nil
}

// dial connects. The step dns ends when the guard is asked first, or when there is no connection.
func (a *attempt) dial() (net.Conn, error) {
	var err error
	if a.host, err = a.server.name(); err != nil { // validation refuses such a host, and no name server knows it
		return nil, &net.DNSError{Err: "no such host", Name: a.server.Host, IsNotFound: true}
	}
	var looked atomic.Int64 // several addresses are tried concurrently
	d := net.Dialer{Timeout: a.limits.Connect, Resolver: a.resolver,
		Control: func(network, address string, c syscall.RawConn) error {
			if took := time.Since(a.begun); looked.CompareAndSwap(0, int64(took)) {
				a.tell(Step{"dns", took})
			}
			return a.guard.Control(network, address, c)
		}}
	conn, err := d.DialContext(a.ctx, "tcp", net.JoinHostPort(a.host, strconv.Itoa(a.server.port())))
	if took := time.Duration(looked.Load()); took != 0 { // otherwise the host has no address
		a.steps, a.step, a.begun = append(a.steps, Step{"dns", took}), "connect", a.begun.Add(took)
		a.trace(a.step, a.begun)
	}
	return conn, err
}

// secure does the TLS handshake.
func (a *attempt) secure(s *session) error {
	s.wire.within(a.limits.TLS)
	config := &tls.Config{ServerName: a.host, MinVersion: tls.VersionTLS12}
	if a.server.CA != "" {
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM([]byte(a.server.CA)) // without a valid CA in it, no certificate is accepted
	}
	conn := tls.Client(s.wire, config)
	if err := conn.Handshake(); err != nil {
		return err
	}
	s.line, s.secure = newLine(conn), true
	return nil
}

func (a *attempt) starttls(s *session) error {
	if !s.startTLS {
		return errNoSTARTTLS
	}
	s.wire.within(a.limits.Command)
	if err := s.command("STARTTLS", 220, 220); err != nil {
		return err
	}
	if s.r.Buffered() > 0 { // someone in between may have injected it (RFC 3207 6)
		return errNoReply
	}
	if err := a.secure(s); err != nil {
		return err
	}
	return a.hello(s)
}

// greeting reads the greeting and says EHLO.
func (a *attempt) greeting(s *session) error {
	a.stage = StageGreeting
	s.wire.within(a.limits.Greeting)
	if err := s.expect(220, 220); err != nil {
		return err
	}
	a.stage = StageEHLO
	return a.hello(s)
}

// hello says EHLO, or HELO to a server that does not know EHLO, and stores what the server offers. Each hello makes a
// new client, which is given the greeting again, or the reply to STARTTLS, as a 220.
func (a *attempt) hello(s *session) error {
	s.wire.within(a.limits.Command)
	s.startTLS, s.auth, s.maxSize = false, nil, 0
	s.client, s.unread, s.replies = gosmtp.NewClient(&s.line), []byte("220 -\r\n"), 0
	err := s.answered(s.client.Hello(a.helloName(a.server.EHLOName, s.wire.LocalAddr())))
	switch {
	case err != nil:
		return err
	case s.code != 250:
		return errNoReply
	case s.replies > 1: // to EHLO and HELO
		return nil
	}
	_, offers, _ := bytes.Cut(s.text, []byte{'\n'})
	for line := range strings.SplitSeq(strings.ToUpper(string(offers)), "\n") {
		keyword, rest, _ := strings.Cut(strings.Replace(line, "AUTH=", "AUTH ", 1), " ") // the = is older than RFC 2554
		switch keyword {
		case "STARTTLS":
			s.startTLS = true
		case "AUTH":
			s.auth = append(s.auth, strings.Fields(rest)...)
		case "SIZE":
			s.maxSize, _ = strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
		}
	}
	return nil
}

// helloName returns the name for EHLO: the server's own, else the configured one, else the full name of this host, else
// its address as the server sees it (RFC 5321 4.1.3).
func (t *Transport) helloName(own string, local net.Addr) string {
	host := cmp.Or(own, t.hello)
	if name, _ := os.Hostname(); host == "" && strings.Contains(name, ".") {
		host = name
	}
	if name, err := hostname.Parse(host); err == nil {
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

// inStep reports whether the server waits for a command after err: it has refused one, or none was sent.
func (s *session) inStep(err error) bool {
	var refusal *textproto.Error
	if errors.As(err, &refusal) {
		return refusal.Code != 421
	}
	return errors.Is(err, errNoSTARTTLS) || errors.Is(err, errClearAuth) || errors.Is(err, errNoAuth) || errors.Is(err,
		errTooLarge) || errors.As(err, new(*oauth.Error))
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
	return s.used < maxMails && s.r.Buffered() == 0 && s.wire.left > maxSessionBytes/2
}

// quit says QUIT and closes, within the given time. Its errors do not matter.
func (s *session) quit(within time.Duration) {
	s.wire.within(within)
	_ = s.command("QUIT", 200, 299)
	_ = s.line.Conn.Close()
	s.abandon()
}

// abandon closes without QUIT.
func (s *session) abandon() { _ = s.wire.Close() }
