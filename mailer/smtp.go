package mailer

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

// DefaultConnections is how many connections there are to one Server: providers count them.
const DefaultConnections = 8

// TransportOptions say how mail is handed over. The zero value is good.
type TransportOptions struct {
	// Allow are networks that may be connected to although they are private, loopback or otherwise special: see refused
	// in guard.go for the list of those.
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
	Dot      time.Duration // the reply to the final dot: 10 min (RFC 5321 4.5.3.2.6; who waits for less sends twice)
	Quit     time.Duration // 1 s
	Trust    time.Duration // 5 s: so long after its last reply a session is taken to be there still
}

func (l Limits) orDefault() Limits {
	for _, f := range []struct {
		limit *time.Duration
		or    time.Duration
	}{
		{&l.Connect, 30 * time.Second}, {&l.Greeting, time.Minute}, {&l.TLS, 30 * time.Second}, {&l.Command, 2 * time.Minute},
		{&l.Data, 2 * time.Minute}, {&l.Body, 5 * time.Minute}, {&l.Dot, 10 * time.Minute}, {&l.Quit, time.Second},
		{&l.Trust, 5 * time.Second},
	} {
		if *f.limit <= 0 {
			*f.limit = f.or
		}
	}
	return l
}

// A Transport hands mail over to SMTP servers (RFC 5321, 3207, 4954; mailer/README.md, SMTP settings, and "Where mail may
// connect") and keeps connections for the next mail to an equal Server. Its methods may be called from any goroutine.
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

// Format writes no more than the type's name: the servers in it have passwords.
func (t *Transport) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "mailer.Transport") }

// Close ends idle connections at once and those in use with their mail; a Send that waits for one, or comes later, has
// the outcome UNAVAILABLE. Sends that talk to a server already go on to their end: wait for them first.
func (t *Transport) Close() { t.pool.close() }

// Send makes one attempt to hand a mail over, and tells all that came of it in the Outcome; there is no error besides.
// The message has CRLF lines of 7-bit text and is not dot-stuffed; it is only read. A connection that is still open from
// an earlier mail is used again; where the server has closed it meanwhile, a new one is made within the same attempt.
//
// The context rules until the final dot is out: when it ends before that, so does Send, and the server has not taken the
// mail. From then on only the server can tell whether the mail was taken, and Send waits for it, Limits.Dot at the most,
// whatever becomes of the context: who gave up waiting would have to send the mail a second time. A caller that needs
// an answer earlier runs Send in a goroutine, answers "still running" at its own time, and takes the Outcome when it
// comes. Once the server has accepted the mail, nothing that follows on the connection changes the Outcome.
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

// SendAlone is Send over a connection of its own, which nothing was sent over before and nothing is after, and which
// does not count towards PerServer and Total: for the test of settings. Nobody sends such a mail a second time, so here
// the context rules to the end: the reply to the final dot is waited for no longer either.
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

// errNoAddress is an envelope address that would not stay one argument of a command.
var errNoAddress = errors.New("is no bare ASCII mail address")

// check finds what needs no server to be found.
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

// stale reports whether a session that had waited for this mail was found to be closed, or out of step, before the
// server has answered MAIL. That says nothing about the mail.
func (a *attempt) stale(s *session, err error) bool {
	if err == nil || a.stage != StageMail || a.ctx.Err() != nil || errors.Is(err, errTooLarge) {
		return false
	}
	var refusal *textproto.Error
	return !errors.As(err, &refusal) || refusal.Code == 421 || s.reset // it refuses RSET
}

// finish says what came of an attempt, and what becomes of its session, if there is one.
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
	if !a.mark.IsZero() { // else nothing was begun
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
