package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

func tuneMail(o *options) { o.load.rounds = 5 }

// mailFlags are the server's flags for how long a send may take. The budget is shorter than the client's timeout, so
// that a slow send is answered 202 and reported.
func mailFlags() []string { return []string{"--smtp-allow", "127.0.0.0/8", "--mail-budget", "5s"} }

// runMail measures sends.
func runMail(ctx context.Context, b *bench) (rep *report, err error) {
	m, err := b.newMailBench()
	if err != nil {
		return nil, err
	}
	defer m.close()
	rep = &report{Parameters: map[string]any{
		"connections": b.load.connections, "rounds": b.load.rounds, "round": b.load.round.String(), "messageBytes": 0,
		"logEntries": b.logEntries, "waiting": b.waiting, "serverFlags": mailFlags(),
	}}
	rate, err := m.againstBare(ctx, rep)
	if err == nil {
		err = m.withDeadServer(ctx, rate, rep)
	}
	if err == nil {
		err = m.readLog(ctx, rep)
	}
	if err != nil {
		return nil, err
	}
	rep.Parameters["messageBytes"] = len(m.sample)
	m.explain(rep)
	return rep, nil
}

// A mailBench is one run of the command: two sinks, and the marks of all mails.
type mailBench struct {
	*bench
	marks   marks
	numbers written // numbers the mails; the rest of it is for files
	clear   *sink
	secure  *sink
	ca      []byte // PEM
	sample  []byte // a message as fingerpost composes it, with the mark of mail 0
	most    int    // the most connections that fingerpost had to a sink
}

func (b *bench) newMailBench() (*mailBench, error) {
	m := &mailBench{bench: b, numbers: written{editor: editor{touched: map[int]bool{}}}}
	if err := os.MkdirAll(b.work, 0o755); err != nil {
		return nil, err
	}
	config, ca, err := newCertificate()
	if err != nil {
		return nil, err
	}
	m.ca = ca
	if m.clear, err = newSink(&m.marks, nil); err != nil {
		return nil, err
	}
	if m.secure, err = newSink(&m.marks, config); err != nil {
		m.clear.close()
		return nil, err
	}
	return m, nil
}

func (m *mailBench) close() {
	m.clear.close()
	m.secure.close()
}

// mailServer starts fingerpost on the config, with a new store unless keep is set.
func (m *mailBench) mailServer(ctx context.Context, name string, c *mailConfig, keep bool) (*server, error) {
	if !keep {
		if err := os.RemoveAll(m.dataDir(name)); err != nil {
			return nil, fmt.Errorf("delete the old store: %w", err)
		}
	}
	return m.fingerpost(ctx, name, c.dir, append(mailFlags(), m.cacheFlags()...)...)
}

func (m *mailBench) config(name string) (*mailConfig, error) {
	return newMailConfig(filepath.Join(m.work, name, "projects.d"), m.ca)
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
	c, err := m.config("mail")
	if err == nil {
		err = errors.Join(c.add(clearSlug, m.clear.listener.Addr().String(), false), c.add(secureSlug, m.secure.listener.Addr().String(), true))
	}
	if err != nil {
		return 0, err
	}
	s, err := m.mailServer(ctx, "mail", c, false)
	if err != nil {
		return 0, err
	}
	defer s.stop()
	m.say("warming up")
	if err := m.takeSample(ctx, s, c); err != nil {
		return 0, err
	}
	syncDisks()
	m.say("in clear text, over %d connections", m.most)
	f, err := m.turnsAgainst(ctx, m.served(s, c.key, clearSlug), m.clear, nil)
	if err != nil {
		return 0, err
	}
	name := func(what string) string { return fmt.Sprintf("%d clients: %s", m.load.connections, what) }
	rep.addMail(name, f[0], f[1], "bare mailer", 0.4)
	rate = spreadOf(f[0].rates).Median

	m.say("over STARTTLS and AUTH, against a connection for each mail")
	if f, err = m.turnsAgainst(ctx, m.served(s, c.key, secureSlug), m.secure, m.ca); err != nil {
		return 0, err
	}
	rep.addMail(func(what string) string { return name("TLS: " + what) }, f[0], f[1], "a connection each", 3)
	return rate, nil
}

// turnsAgainst alternates fingerpost and the bare mailer on a sink. With a CA, the bare mailer opens a connection for
// each mail.
func (m *mailBench) turnsAgainst(ctx context.Context, ours *writeSide, to *sink, ca []byte) ([]writeFigures, error) {
	bare, err := m.bareMailer(to, ca, ca != nil)
	if err != nil {
		return nil, err
	}
	f, err := m.turns(ctx, m.load.connections, ours, m.bare(bare))
	return f, errors.Join(err, bare.stop())
}

// addMail adds the rows of two sides that took turns.
func (r *report) addMail(name func(string) string, ours, bare writeFigures, against string, goal float64) {
	r.add(
		compared(name("raw sends"), "mails/s", ours.rates, bare.rates, against).ratioAtLeast(goal),
		compared(name("latency p50"), "ms", ours.p50, bare.p50, against),
		compared(name("latency p99"), "ms", ours.p99, bare.p99, against),
		several(name("CPU"), "ms/mail", ours.cpu), // the bare mailer's share is not separable from the sink's
	)
}

// warmMails is how many mails are sent before the measurement.
const warmMails = 1000

// takeSample sends the first mails, and takes the message from them that the bare mailer sends.
func (m *mailBench) takeSample(ctx context.Context, s *server, c *mailConfig) error {
	if err := m.callTimes(ctx, s, c.key, min(warmMails, m.load.warmUp), false, clearSlug, secureSlug); err != nil {
		return err
	}
	if m.most, _ = m.clear.connections(); m.most == 0 {
		return errors.New("warm up: nothing came to the sink")
	}
	first := m.clear.first()
	_, rest, ok := bytes.Cut(first, []byte("Subject: Order "))
	if !ok || len(rest) < len(mark(0)) {
		return errors.New("warm up: the first mail has no subject")
	}
	m.sample = bytes.ReplaceAll(first, rest[:len(mark(0))], []byte(mark(0)))
	return nil
}

// explain notes what was done and what decides the figures.
func (m *mailBench) explain(rep *report) {
	rep.note("A send is POST /api/mail/send/raw with text and HTML; a message has %d bytes. All %d mails that were answered \"sent\" were found at the sink, "+
		"each once, with its own mark in recipient, subject and both parts, and the whole text.", len(m.sample), m.marks.checked())
	rep.note("The server's flags: %v. It has at most 8 connections to one SMTP config; the sink saw %d, and the bare mailer has as many. No limit of rate is "+
		"in force: there is none for sends.", mailFlags(), m.most)
	rep.note("The bare mailer is net/smtp, in the process of the sink: for each mail one synced batch of Pebble with a ready message of fingerpost's, then MAIL to the " +
		"final dot. Fingerpost notes the end of each mail, too, which is a second synced batch. With TLS the certificates are on P-256.")
	rep.note("Sink, callers and server share the machine: where all cores are busy, what the sink and the callers take is lost to fingerpost.")
	if disk, err := fileSystem(m.work); err == nil && disk == fsTmpfs {
		rep.note("The work folder lies in memory (tmpfs), where fsync costs nothing: name a folder on a disk by -work.")
	}
}

// every returns the time between two mails at a rate.
func every(rate float64) time.Duration { return time.Duration(float64(time.Second) / rate) }
