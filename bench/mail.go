package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// mailOptions are the flags of mail.
type mailOptions struct{ logEntries, waiting int }

func (o *mailOptions) register(f *flag.FlagSet) {
	f.IntVar(&o.logEntries, "log-entries", o.logEntries, "mail: entries of the log that is read; earlier ones stay")
	f.IntVar(&o.waiting, "waiting", o.waiting, "mail: mails that wait for a dead server")
}

func (o *mailOptions) check() error {
	if o.logEntries <= deepPage*logPage || o.waiting < 1 {
		return fmt.Errorf("-log-entries must be more than %d, and -waiting positive", deepPage*logPage)
	}
	return nil
}

// mailFlags are the server's flags for how long a send may take. The budget is shorter than the client's timeout, so
// that a slow send is answered 202 and reported.
func mailFlags() []string { return []string{"--smtp-allow", "127.0.0.0/8", "--mail-budget", "5s"} }

// runMail measures sends.
func runMail(ctx context.Context, b *bench) (*report, error) {
	m, err := b.newMailBench()
	if err != nil {
		return nil, err
	}
	rep := &report{Parameters: map[string]any{
		"connections": b.connections, "rounds": b.rounds, "round": b.round.String(), "messageBytes": 0,
		"logEntries": b.mail.logEntries, "waiting": b.mail.waiting, "serverFlags": mailFlags(),
	}}
	rate, err := m.againstBare(ctx, rep)
	if err == nil {
		err = m.withDeadServer(ctx, rate, rep)
	}
	if err == nil {
		err = m.readLog(ctx, rep)
	}
	rep.Parameters["messageBytes"] = len(m.sample)
	m.explain(rep)
	return rep, err
}

// A mailBench is one run of the command: two sinks, and the marks of all mails.
type mailBench struct {
	*bench
	marks   *marks
	numbers atomic.Int64 // the last number of a mail
	clear   *sink
	secure  *sink
	ca      []byte // PEM
	sample  []byte // a message as fingerpost composes it, with the mark of mail 0
	most    int    // the most connections that fingerpost had to a sink
}

func (b *bench) newMailBench() (*mailBench, error) {
	m := &mailBench{bench: b, marks: newMarks()}
	config, ca, err := newCertificate()
	if err != nil {
		return nil, err
	}
	m.ca = ca
	if m.clear, err = b.newSink(m.marks, nil); err != nil {
		return nil, err
	}
	m.secure, err = b.newSink(m.marks, config)
	return m, err
}

// A mailServer is a fingerpost that sends mail.
type mailServer struct {
	*server
	key string
}

// startMail starts fingerpost on the projects, with a new store unless keep is set.
func (m *mailBench) startMail(ctx context.Context, name string, keep bool, projects ...mailProject) (
	s mailServer, err error) {
	dir := filepath.Join(m.work, name, "projects.d")
	if s.key, err = writeMailConfig(dir, m.ca, projects); err != nil {
		return s, fmt.Errorf("write the config: %w", err)
	}
	if !keep {
		if err := m.clearStore(name); err != nil {
			return s, err
		}
	}
	s.server, err = m.fingerpost(ctx, name, dir, mailFlags()...)
	return s, err
}

// The projects of the rounds against the bare mailer.
const (
	clearSlug  = "in-clear"
	secureSlug = "over-tls"
)

// againstBare alternates fingerpost and the bare mailer: first in clear text, both over reused connections, then over
// STARTTLS and AUTH, where the bare mailer opens a connection for each mail. It returns how many mails a second
// fingerpost has sent in clear text.
func (m *mailBench) againstBare(ctx context.Context, rep *report) (rate float64, err error) {
	s, err := m.startMail(ctx, "mail", false,
		mailProject{clearSlug, m.clear.addr, false}, mailProject{secureSlug, m.secure.addr, true})
	if err != nil {
		return 0, err
	}
	defer s.stop()
	m.say("warming up")
	if err := m.takeSample(ctx, s); err != nil {
		return 0, err
	}
	unix.Sync()
	for _, side := range []struct {
		slug, prefix, against string
		to                    *sink
		ca                    []byte
		goal                  float64
	}{
		{clearSlug, "", "bare mailer", m.clear, nil, 0.4},
		{secureSlug, "TLS: ", "a connection each", m.secure, m.ca, 3},
	} {
		bare, err := m.newBareMailer(side.to, side.ca)
		if err != nil {
			return 0, err
		}
		ours := m.sending(s.name, load{side: m.calls(s, false, side.slug), workers: m.connections})
		theirs := m.sending(side.against, load{side: bare.side(&m.numbers), workers: m.most})
		m.say("%s, %d connections", side.slug, m.most)
		if err := m.alternate(ctx, ours, theirs); err != nil {
			return 0, err
		}
		name := func(what string) string { return fmt.Sprintf("%d clients: %s%s", m.connections, side.prefix, what) }
		rep.add(
			ours.against(theirs, perSecond, name("raw sends"), "mails/s").ratioAtLeast(side.goal),
			ours.against(theirs, "p50", name("latency p50"), "ms"),
			ours.against(theirs, "p99", name("latency p99"), "ms"),
			// the bare mailer's share of CPU is not separable from the sink's
			measured(name("CPU"), "µs/mail", ours.figures[cpuEach]...),
		)
		if rate == 0 {
			rate = ours.median(perSecond)
		}
	}
	return rate, nil
}

// calls is a side that sends mail of the projects over the API, a connection for each worker. With queued each mail must
// be queued, otherwise each must be sent.
func (m *mailBench) calls(s mailServer, queued bool, slugs ...string) *side {
	return &side{name: s.name, pid: s.pid, worker: func(i int) worker {
		cl, slug := newMailClient(s.addr, s.key), slugs[i%len(slugs)]
		_ = cl.connect() // now, so that it costs the first mail nothing; an error comes again with it
		return worker{close: cl.close, do: func() error {
			number := int(m.numbers.Add(1))
			a, err := cl.call("POST", "/api/mail/send/raw", sendBody(slug, number))
			if err == nil {
				err = judgeSend(a, queued)
			}
			if err != nil {
				return fmt.Errorf("mail %d of %s: %w", number, slug, err)
			}
			if !queued {
				m.marks.sent(number)
			}
			return nil
		}}
	}}
}

// sending is a turn of which each round ends with a check of all mails.
func (m *mailBench) sending(name string, l load) *turn {
	send := m.turn(name, l)
	return newTurn(name, func(ctx context.Context, t *turn) error {
		if err := send.measure(ctx, t); err != nil {
			return err
		}
		return m.marks.check()
	})
}

// recitalJSON is recital in a JSON string.
var recitalJSON = strings.ReplaceAll(recital, "\r\n", `\r\n`)

// sendBody is the body of a send with a mark.
func sendBody(slug string, number int) []byte {
	n := mark(number)
	return []byte(`{"domain":"` + slug + hostSuffix + `","toEmail":"` + n + markDomain + `","subject":"Order ` + n +
		`","bodyHtml":"<h1>Order ` + n + `</h1>\r\n<p>\r\n` + recitalJSON + `</p>\r\n","bodyText":"Order ` + n + `\r\n\r\n` +
		recitalJSON + `"}`)
}

// judgeSend returns an error unless the answer is the expected one.
func judgeSend(a answer, queued bool) error {
	status, field := 200, `"data":{"sent":true,"logId":`
	if queued {
		status, field = 202, `"data":{"sent":false,"queued":true,"logId":`
	}
	if a.status != status || !bytes.Contains(a.body, []byte(field)) {
		return fmt.Errorf("status %d, want %d: %s", a.status, status, a.body)
	}
	return nil
}

// send lets all clients together send n mails.
func (m *mailBench) send(ctx context.Context, s *side, n int) error {
	if _, err := (load{side: s, workers: m.connections, count: n}).run(ctx); err != nil {
		return err
	}
	return errors.Join(ctx.Err(), m.marks.check())
}

// warmMails is how many mails are sent before the measurement.
const warmMails = 1000

// takeSample sends the first mails, and takes the message from them that the bare mailer sends.
func (m *mailBench) takeSample(ctx context.Context, s mailServer) error {
	if err := m.send(ctx, m.calls(s, false, clearSlug, secureSlug), warmMails); err != nil {
		return err
	}
	m.most = m.clear.connections()
	first := m.clear.first()
	_, rest, ok := bytes.Cut(first, []byte("Subject: Order "))
	if !ok || len(rest) < len(mark(0)) {
		return errors.New("warm up: no mail with a subject came to the sink")
	}
	m.sample = bytes.ReplaceAll(first, rest[:len(mark(0))], []byte(mark(0)))
	return nil
}

// The projects of one server: one whose SMTP server works, and two whose mail waits.
const (
	healthySlug = "healthy"
	refusedSlug = "refused"
	silentSlug  = "silent"
)

// withDeadServer measures the sends of a healthy project at a constant rate, half of the rate reached before. It
// alternates a server on which much mail of other projects waits for dead SMTP servers and a server
// without such mail. The server that is not measured is stopped.
func (m *mailBench) withDeadServer(ctx context.Context, reached float64, rep *report) error {
	rate := reached / 2
	refused, err := newDeadServer(1)
	if err != nil {
		return err
	}
	silent, err := newDeadServer(2)
	if err != nil {
		return err
	}
	m.atEnd(silent.close)
	var servers []mailServer
	for _, name := range []string{"mail-quiet", "mail-waiting"} {
		s, err := m.startMail(ctx, name, false, mailProject{healthySlug, m.clear.addr, false},
			mailProject{refusedSlug, refused.address, false}, mailProject{silentSlug, silent.address, false})
		if err != nil {
			return err
		}
		defer s.stop()
		defer func() { _ = s.signal(syscall.SIGCONT) }() // a stopped process could not end
		servers = append(servers, s)
	}
	m.say("letting %d mails wait for dead servers", m.mail.waiting)
	if err := m.send(ctx, m.calls(servers[1], true, refusedSlug, silentSlug), m.mail.waiting); err != nil {
		return err
	}
	// From here on one of the two accepts connections and hangs, which costs its callers more than a refusal.
	if err := silent.hang(); err != nil {
		return err
	}
	side := func(name string, s, other mailServer) *turn {
		calls := m.calls(s, false, healthySlug)
		send := m.sending(name, load{side: calls, workers: m.connections, rate: rate})
		return newTurn(name, func(ctx context.Context, t *turn) error {
			if err := errors.Join(other.signal(syscall.SIGSTOP), s.signal(syscall.SIGCONT)); err != nil {
				return err
			}
			if err := m.send(ctx, calls, warmMails); err != nil {
				return err
			}
			return send.measure(ctx, t)
		})
	}
	quiet, busy := side("none wait", servers[0], servers[1]), side("mails wait", servers[1], servers[0])
	if err := m.alternate(ctx, quiet, busy); err != nil {
		return err
	}
	for _, s := range servers {
		if err := s.signal(syscall.SIGCONT); err != nil {
			return err
		}
	}
	metrics, err := servers[1].metrics()
	if err != nil {
		return err
	}
	if depth := metrics["fingerpost_mail_queue_depth"]; int(depth) != m.mail.waiting {
		return fmt.Errorf("%v mails wait, of %d", depth, m.mail.waiting)
	}
	without, err := servers[0].memory()
	if err != nil {
		return err
	}
	with, err := servers[1].memory()
	if err != nil {
		return err
	}
	name := func(what string) string {
		return fmt.Sprintf("%d mails wait for dead servers: %s", m.mail.waiting, what)
	}
	rep.Parameters["rate"] = rate
	rep.add(
		busy.against(quiet, "p50", name("a healthy project's latency p50"), "ms"),
		busy.against(quiet, "p99", name("its latency p99"), "ms").ratioAtMost(1.2),
		busy.against(quiet, cpuEach, name("its CPU"), "µs/mail"),
		measured(name("resident memory"), "MiB", with.now).over("none wait", without.now),
	)
	rep.note("A healthy project's sends come at a constant rate (%.0f a second) and count from when they were due. "+
		"Of those that wait, half have a server that refuses connections, half one that takes them and says nothing. "+
		"The two servers have stores of their own, and only one runs at a time.", rate)
	return nil
}

// signal stops a server or lets it continue.
func (s *server) signal(sig syscall.Signal) error { return s.cmd.Process.Signal(sig) }

// explain notes what was done and what decides the figures.
func (m *mailBench) explain(rep *report) {
	rep.note("A send is POST /api/mail/send/raw with text and HTML; a message has %d bytes. "+
		"All %d mails that were answered \"sent\" were found at the sink, each once, with its own mark in recipient, "+
		"subject and both parts, and the whole text.", len(m.sample), m.marks.checked)
	rep.note("The server's flags: %v. It has at most 8 connections to one SMTP config; the sink saw %d, "+
		"and the bare mailer has as many. No limit of rate is in force: there is none for sends.", mailFlags(), m.most)
	rep.note("The bare mailer is net/smtp, in the process of the sink: for each mail one synced batch of Pebble with a " +
		"ready message of fingerpost's, then MAIL to the final dot. Fingerpost notes the end of each mail, too, " +
		"which is a second synced batch. With TLS the certificates are on P-256.")
	rep.note("Sink, callers and server share the machine: where all cores are busy, what the sink and the callers " +
		"take is lost to fingerpost.")
	rep.noteTmpfs(fileSystem(m.work))
}
