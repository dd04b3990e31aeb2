package smtp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/textproto"
	"strings"
	"time"
)

// DefaultConnections bounds the connections to one Server: providers count them.
const DefaultConnections = 8

// TransportOptions configure a Transport. The zero value is ready for use.
type TransportOptions struct {
	// Allow are networks that may be connected to although they are private, loopback or otherwise special; guard.go lists
	// those (refused).
	Allow []netip.Prefix
	// HelloName is the name to greet servers with. Where it is "", or no host name, it is the name of this machine if
	// that has a dot, else the address that the connection comes from.
	HelloName string
	Limits    Limits
	// PerServer and Total bound connections, idle ones included; 0 means DefaultConnections and 512.
	PerServer, Total int
	// Idle is how long a connection is kept for the next mail; 0 means 30 seconds, which is less than servers wait.
	Idle time.Duration
	// Resolver looks hosts up; nil means the system's.
	Resolver *net.Resolver
}

// Limits are the most that each part of an attempt may take, however the server spends it. 0 means what is given here.
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
	for _, f := range []struct {
		limit *time.Duration
		or    time.Duration
	}{
		{&l.Connect, 30 * time.Second}, {&l.Greeting, time.Minute}, {&l.TLS, 30 * time.Second}, {&l.Command, 2 * time.Minute},
		{&l.Data, 2 * time.Minute}, {&l.Body, 5 * time.Minute}, {&l.Dot, 10 * time.Minute}, {&l.Quit, time.Second},
	} {
		if *f.limit <= 0 {
			*f.limit = f.or
		}
	}
	return l
}

// A Transport hands mail over to SMTP servers (RFC 5321, 3207, 4954) and keeps connections for the next mail to an equal Server. Its methods may be called from any goroutine.
type Transport struct {
	guard    guard
	hello    string
	limits   Limits
	resolver *net.Resolver
	pool     *pool
}

// NewTransport returns a Transport. Close it at the end.
func NewTransport(o TransportOptions) *Transport {
	or := func(n, otherwise int) int {
		if n <= 0 {
			return otherwise
		}
		return n
	}
	if o.Idle <= 0 {
		o.Idle = 30 * time.Second
	}
	limits := o.Limits.orDefault()
	return &Transport{guard: newGuard(o.Allow), hello: o.HelloName, limits: limits, resolver: o.Resolver,
		pool: newPool(or(o.PerServer, DefaultConnections), or(o.Total, 512), o.Idle, limits.Quit)}
}

// Format writes the type's name alone: the servers in the value have passwords.
func (t *Transport) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "smtp.Transport") }

// Close ends idle connections at once, and those in use after their mail. A Send that waits for one, or comes later, has the outcome
// UNAVAILABLE. Sends that talk to a server already go on to their end: a caller waits for them first.
func (t *Transport) Close() { t.pool.close() }

// Send makes one attempt to hand a mail over, and returns its Outcome; there is no error apart from that. The message has CRLF lines
// of 7-bit text and is not dot-stuffed; it is only read. A connection that is still open from an earlier mail is used again; where
// the server has closed it, a new one is made within the same attempt.
//
// The context rules until the final dot is out: when it ends before that, so does Send, and the server has not accepted the mail.
// From then on only the server knows whether the mail was accepted, and Send waits for its reply, Limits.Dot at the most, whatever
// becomes of the context: a caller that gave up would have to send the mail a second time. A caller that needs an answer earlier
// runs Send in a goroutine and takes the Outcome later. Once the server has accepted the mail, nothing that follows on the
// connection changes the Outcome.
func (t *Transport) Send(ctx context.Context, server Server, env Envelope, message []byte) Outcome {
	a := &attempt{Transport: t, ctx: ctx, server: server, env: env, message: message, stage: StageDial}
	if err := a.check(); err != nil {
		return a.outcome(err)
	}
	lane, s, err := t.pool.take(ctx, server)
	if err != nil {
		return a.outcome(err)
	}
	if s != nil {
		a.mark = time.Now()
		err := a.transact(s)
		if !a.stale(s, err) {
			return a.finish(lane, s, err)
		}
		s.abandon()
	}
	s, err = a.open()
	if err == nil {
		err = a.transact(s)
	}
	return a.finish(lane, s, err)
}

// SendAlone is Send over a new connection that serves no other mail and does not count towards PerServer and Total. It is for the test of
// settings. Such a mail is not sent a second time, so the context rules to the end, the reply to the final dot included.
func (t *Transport) SendAlone(ctx context.Context, server Server, env Envelope, message []byte) Outcome {
	a := &attempt{Transport: t, ctx: ctx, server: server, env: env, message: message, stage: StageDial, alone: true}
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

// errNoAddress is for an envelope address that would not stay one argument of a command.
var errNoAddress = errors.New("is no bare ASCII mail address")

// check finds what is wrong before a server is asked.
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

// stale reports whether a reused session was found closed or out of step before the server answered MAIL. That says nothing about the
// mail, which is tried once more over a new connection.
func (a *attempt) stale(s *session, err error) bool {
	if err == nil || a.stage != StageMail || a.ctx.Err() != nil || errors.Is(err, errTooLarge) {
		return false
	}
	var refusal *textproto.Error
	return !errors.As(err, &refusal) || refusal.Code == 421 || s.reset // RSET was refused
}

// finish returns the outcome of an attempt, and gives its session back or ends it.
func (a *attempt) finish(l *lane, s *session, err error) Outcome {
	out := a.outcome(err)
	switch {
	case s == nil:
		a.pool.drop(l)
	case s.reusable(a.stage, err):
		a.pool.give(l, s)
	case err == nil || s.inStep(err):
		a.pool.end(l, s)
	default:
		s.abandon()
		a.pool.drop(l)
	}
	return out
}

// outcome classifies, and ends the last step.
func (a *attempt) outcome(err error) Outcome {
	if !a.mark.IsZero() { // else no step was begun
		a.step(a.stepName())
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
