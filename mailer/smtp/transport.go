package smtp

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/textproto"
	"strings"
	"time"

	"fingerpost/mailer/oauth"
	"fingerpost/resolver/publicnet"
)

// DefaultConnections bounds the connections to one Server, because providers count them.
const DefaultConnections = 8

// TransportOptions configure a Transport. The zero value is ready for use.
type TransportOptions struct {
	// Allow lists networks that may be connected to although they are private, loopback or otherwise special; package
	// publicnet lists those.
	Allow []netip.Prefix
	// HelloName is the name to greet servers with. If it is "" or no host name, it is this machine's name if that has a
	// dot, else the address that the connection comes from.
	HelloName string
	Limits    Limits
	// PerServer and Total bound connections, including idle ones; 0 means DefaultConnections and 512.
	PerServer, Total int
	// Idle is how long a connection is kept for the next mail; 0 means 30 seconds, which is less than servers wait.
	Idle time.Duration
	// Resolver looks hosts up; nil means the system's.
	Resolver *net.Resolver
	// TokenRoots are trusted for token servers; nil means the system's.
	TokenRoots *x509.CertPool
}

// Limits are the longest times that each part of an attempt may take, whatever the server does. 0 means the value given
// here.
type Limits struct {
	Connect  time.Duration // look-up and TCP: 30 s
	Greeting time.Duration // 1 min
	TLS      time.Duration // handshake: 30 s
	Command  time.Duration // EHLO, STARTTLS, RSET, MAIL and RCPT each, and all of AUTH: 2 min
	Data     time.Duration // the reply to DATA: 2 min
	Body     time.Duration // to write the message: 5 min
	Dot      time.Duration // the reply to the final dot: 10 min (RFC 5321 4.5.3.2.6; a shorter wait sends mail twice)
	Quit     time.Duration // 1 s
}

func (l Limits) orDefault() Limits {
	return Limits{
		Connect: cmp.Or(l.Connect, 30*time.Second), Greeting: cmp.Or(l.Greeting, time.Minute), TLS: cmp.Or(l.TLS,
			30*time.Second),
		Command: cmp.Or(l.Command, 2*time.Minute), Data: cmp.Or(l.Data, 2*time.Minute), Body: cmp.Or(l.Body, 5*time.Minute),
		Dot: cmp.Or(l.Dot, 10*time.Minute), Quit: cmp.Or(l.Quit, time.Second),
	}
}

// A Transport transmits mail to SMTP servers (RFC 5321, 3207, 4954) and keeps connections for later mail to an equal
// Server. Any goroutine may call its methods.
type Transport struct {
	guard    publicnet.Guard
	hello    string
	limits   Limits
	resolver *net.Resolver
	pool     *pool
	tokens   *oauth.Tokens
}

// NewTransport returns a Transport. Close it at the end.
func NewTransport(o TransportOptions) *Transport {
	t := &Transport{guard: publicnet.New(o.Allow), hello: o.HelloName, limits: o.Limits.orDefault(), resolver: o.Resolver,
		tokens: oauth.New(oauth.Options{Allow: o.Allow, Resolver: o.Resolver, Roots: o.TokenRoots})}
	t.pool = &pool{
		perServer: cmp.Or(o.PerServer, DefaultConnections), total: cmp.Or(o.Total, 512),
		idleTime: cmp.Or(o.Idle, 30*time.Second), goodbye: t.limits.Quit, queues: map[Server]*serverQueue{},
	}
	return t
}

// Format writes only the type's name, because the servers in the value have passwords.
func (t *Transport) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "smtp.Transport") }

// Close ends idle connections at once, and those in use after their mail. A Send that waits for a connection, or starts
// later, has the outcome UNAVAILABLE. Sends that already talk to a server go on to their end: wait for them before
// Close.
func (t *Transport) Close() { t.pool.close() }

// Send makes one attempt to transmit a mail and returns its Outcome; there is no other error. The message has CRLF
// lines of 7-bit text and is not dot-stuffed; Send only reads it. Send reuses an open connection of an earlier mail; if
// the server has closed it, Send opens a new one within the same attempt.
//
// The context applies until the final dot is out: if it ends before that, Send returns and the server has not accepted
// the mail. From then on only the server knows whether it accepted the mail, and Send waits for its reply, up to
// Limits.Dot, even if the context ends: a caller that gave up would have to send the mail a second time. A caller that
// needs an answer earlier runs Send in a goroutine and takes the Outcome later. Once the server has accepted the mail,
// nothing that follows on the connection changes the Outcome.
func (t *Transport) Send(ctx context.Context, server Server, env Envelope, message []byte) Outcome {
	a := &attempt{Transport: t, ctx: ctx, server: server, env: env, message: message, stage: StageDial,
		tell: func(Step) {}}
	if err := a.check(); err != nil {
		return a.outcome(err)
	}
	queue, s, err := t.pool.acquire(ctx, server)
	if err != nil {
		return a.outcome(err)
	}
	if s != nil {
		err := a.transact(s)
		if !a.stale(s, err) {
			return a.finish(queue, s, err)
		}
		s.abandon()
	}
	s, err = a.open()
	if err == nil {
		err = a.transact(s)
	}
	return a.finish(queue, s, err)
}

// SendAlone is Send over a new connection that serves no other mail and does not count towards PerServer and Total. It
// is for the test of settings. Such a mail is never repeated, so the context applies to the end, including the reply to
// the final dot. tell is called with each step when it has ended, from any goroutine; it must return at once.
func (t *Transport) SendAlone(ctx context.Context, server Server, env Envelope, message []byte,
	tell func(Step)) Outcome {
	a := &attempt{Transport: t, ctx: ctx, server: server, env: env, message: message, stage: StageDial, alone: true,
		tell: tell}
	if err := a.check(); err != nil {
		return a.outcome(err)
	}
	s, err := a.open()
	if err == nil {
		err = a.transact(s)
	}
	out := a.outcome(err)
	switch {
	case s == nil:
	case err == nil || s.inStep(err):
		t.pool.background(func() { s.quit(t.limits.Quit) })
	default:
		s.abandon()
	}
	return out
}

// Reach connects to a server, with TLS if it asks for that, says EHLO and QUIT, and returns how far it got: Accepted, or
// what Send would return. It does not log in, and counts towards no bound. The context applies to the end.
func (t *Transport) Reach(ctx context.Context, server Server) Outcome {
	server.Username, server.Password, server.Auth, server.OAuth = "", "", "", oauth.Account{}
	a := &attempt{Transport: t, ctx: ctx, server: server, stage: StageDial, alone: true, tell: func(Step) {}}
	s, err := a.open()
	out := Outcome{Stage: StageEHLO, SMTPCode: 250}
	if err != nil {
		out = a.classify(err)
	}
	switch {
	case s == nil:
	case err == nil || s.inStep(err):
		s.quit(t.limits.Quit)
	default:
		s.abandon()
	}
	return out
}

// errNoAddress means that an envelope address would not stay one argument of a command.
var errNoAddress = errors.New("is no bare ASCII mail address")

// check finds problems before a server is contacted.
func (a *attempt) check() error {
	if err := a.ctx.Err(); err != nil {
		return err
	}
	for _, x := range []struct {
		stage   Stage
		address string
	}{{StageMail, a.env.From}, {StageRcpt, a.env.To}} {
		at := strings.LastIndexByte(x.address, '@')
		bad := func(r rune) bool { return r <= ' ' || r > '~' || r == '<' || r == '>' }
		if at < 1 || at == len(x.address)-1 || len(x.address) > 254 || strings.ContainsFunc(x.address, bad) {
			a.stage = x.stage
			return errNoAddress
		}
	}
	return nil
}

// stale reports whether a reused session was closed or out of step before the server answered MAIL. That says nothing
// about the mail, which is tried once more over a new connection.
func (a *attempt) stale(s *session, err error) bool {
	if err == nil || a.stage != StageMail || a.ctx.Err() != nil || errors.Is(err, errTooLarge) {
		return false
	}
	var refusal *textproto.Error
	return !errors.As(err, &refusal) || refusal.Code == 421 || s.reset // RSET was refused
}

// finish returns the outcome of an attempt, and gives its session back or ends it.
func (a *attempt) finish(q *serverQueue, s *session, err error) Outcome {
	out := a.outcome(err)
	switch {
	case s == nil:
		a.pool.drop(q)
	case s.reusable(a.stage, err):
		a.pool.give(q, s)
	case err == nil || s.inStep(err):
		a.pool.end(q, s)
	default:
		s.abandon()
		a.pool.drop(q)
	}
	return out
}

// outcome classifies the error and ends the last step.
func (a *attempt) outcome(err error) Outcome {
	if err != nil {
		a.span.Fail()
	}
	if a.step != "" {
		a.begin("")
	}
	out := Outcome{Stage: StageEOD, SMTPCode: 250}
	if err != nil {
		out = a.classify(err)
	} else {
		out.Enhanced, out.Reply = a.clean(a.accepted)
	}
	out.Took = a.steps
	return out
}
