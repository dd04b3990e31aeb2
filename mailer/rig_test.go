package mailer_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/mailer"
	"fingerpost/mailer/smtp"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// A rig is a Mailer on the real parts: the resolver and its store in memory, SMTP over loopback. Only the clock is
// fake.
type rig struct {
	t         testing.TB
	clock     *testClock
	resolver  *resolver.Resolver
	ledger    *faultyLedger
	transport *smtp.Transport
	options   mailer.Options

	connections int                                 // to one server; 0: as many as there are places
	carry       func(mailer.Carrier) mailer.Carrier // around the transport; may be nil
	*mailer.Mailer
}

// newRig starts a Mailer for projects, each a file.
func newRig(t testing.TB, projects ...catalog.ProjectConfig) *rig {
	t.Helper()
	r := &rig{t: t, clock: newClock()}
	var err error
	r.resolver, err = resolver.Open(resolver.Options{
		CacheBytes: 1 << 20, Now: r.clock.Now, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.resolver.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, p := range projects {
		r.declare(p)
	}
	r.options = mailer.Options{
		Projects: r.resolver, Clock: r.clock, Logger: slog.New(slog.DiscardHandler),
		OpenSecret: func(s catalog.Secret, _ string) (string, error) {
			if s.Source != catalog.SecretPlain {
				return "", errors.New("only plain ones here")
			}
			return s.Ref, nil
		},
	}
	r.start(r.resolver)
	return r
}

// start opens a Mailer on the rig's parts.
func (r *rig) start(store mailer.Ledger) {
	r.t.Helper()
	r.open(&faultyLedger{Ledger: store})
}

func (r *rig) open(ledger *faultyLedger) {
	r.t.Helper()
	r.ledger = ledger
	r.transport = smtp.NewTransport(smtp.TransportOptions{
		Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, PerServer: cmp.Or(r.connections, mailer.DefaultPerServer),
	})
	r.options.Ledger, r.options.Carrier = r.ledger, r.transport
	if r.carry != nil {
		r.options.Carrier = r.carry(r.transport)
	}
	m, err := mailer.Open(r.options)
	if err != nil {
		r.t.Fatal(err)
	}
	r.Mailer = m
	transport := r.transport
	r.t.Cleanup(func() {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		_ = m.Drain(now) // an error where the test has done so already
		transport.Close()
	})
}

// kill ends the Mailer as kill -9 would, and starts another on the same store.
func (r *rig) kill() {
	r.t.Helper()
	r.ledger.set(func() { r.ledger.dead = true })
	r.start(r.ledger.Ledger)
}

// declare replaces a project's file.
func (r *rig) declare(p catalog.ProjectConfig) {
	r.t.Helper()
	r.apply(catalog.FileChange{
		Path: p.Project.Slug + ".hcl", Declared: &catalog.Declared{Projects: []catalog.ProjectConfig{p}}, Bytes: []byte(p.Project.Slug),
		Row: &catalog.FileRow{Stamp: catalog.Stamp{Size: 1, ModTime: noon}},
	})
}

func (r *rig) apply(f catalog.FileChange) {
	r.t.Helper()
	if _, err := r.resolver.Apply(&catalog.Change{Files: []catalog.FileChange{f}}); err != nil {
		r.t.Fatal(err)
	}
}

// project declares "<slug>.example", active, with mail to a server, if any.
func project(slug string, to interface{ Port() int }) catalog.ProjectConfig {
	u := catalog.DeriveProjectUUID(slug)
	p := catalog.ProjectConfig{
		Project: catalog.Project{ID: catalog.DeriveID(catalog.KindProject, u), UUID: u, Name: "The " + slug, Slug: slug, Status: catalog.StatusActive},
		Service: catalog.NewServiceSettings(), Auth: catalog.NewAuthSettings(),
	}
	p.Service.MailEnabled = true
	name := slug + ".example"
	du := catalog.DeriveDomainUUID(u, name)
	p.Domains = []catalog.Domain{{ID: catalog.DeriveID(catalog.KindDomain, du), UUID: du, ProjectID: p.Project.ID, Name: name, Active: true}}
	if to != nil {
		p.SMTP = &catalog.SMTPConfig{Host: "127.0.0.1", Port: to.Port(), FromEmail: "hello@" + name, FromName: "Acme, Inc.", Active: true}
	}
	return p
}

// template adds one to a project.
func template(p *catalog.ProjectConfig, code, maxAge string, active bool) {
	u := catalog.DeriveTemplateUUID(p.Project.UUID, code)
	p.Templates = append(p.Templates, catalog.Template{
		ID: catalog.DeriveID(catalog.KindTemplate, u), UUID: u, ProjectID: p.Project.ID, Code: code, Name: code, MaxAge: maxAge, Active: active,
		SubjectTemplate: "Hello {{userName}} of {{projectName}}", BodyHTML: "<p>Hello {{userName}}</p>", BodyText: "Hello {{userName}}",
	})
}

// raw is a mail that the project of a slug sends.
func raw(slug string) mailer.Send {
	return mailer.Send{Domain: slug + ".example", ToEmail: "you@peer.example", Subject: "Hi", BodyText: "Hello\n", ServiceName: "test"}
}

// sendAsync sends and passes on what comes of it.
func (r *rig) sendAsync(s mailer.Send) <-chan result {
	c := make(chan result, 1)
	go func() {
		receipt, err := r.Send(context.Background(), s)
		c <- result{receipt, err}
	}()
	return c
}

type result struct {
	mailer.Receipt
	err error
}

// send sends and wants no error.
func (r *rig) send(s mailer.Send) mailer.Receipt {
	r.t.Helper()
	receipt, err := r.Send(r.t.Context(), s)
	if err != nil {
		r.t.Fatal("send: ", err)
	}
	return receipt
}

// refuse sends and wants an error of a code.
func (r *rig) refuse(s mailer.Send, want catalog.Code) *catalog.Error {
	r.t.Helper()
	receipt, err := r.Send(r.t.Context(), s)
	var e *catalog.Error
	if !errors.As(err, &e) || e.Code != want {
		r.t.Fatalf("send answered %+v, %v, want %s", receipt, err, want)
	}
	return e
}

// entry returns a mail's log entry, of any project.
func (r *rig) entry(slug string, id int64) catalog.MailLog {
	r.t.Helper()
	log, found, err := r.ledger.MailLog(projectID(slug), id)
	if err != nil || !found {
		r.t.Fatalf("mail %d is not in the log: %v", id, err)
	}
	return log
}

func projectID(slug string) int64 {
	return catalog.DeriveID(catalog.KindProject, catalog.DeriveProjectUUID(slug))
}

// becomes waits until a mail has a status, and returns its entry.
func (r *rig) becomes(slug string, id int64, status catalog.MailStatus) catalog.MailLog {
	r.t.Helper()
	testrig.Eventually(r.t, fmt.Sprintf("mail %d is %s", id, status), func() bool { return r.entry(slug, id).Status == status })
	return r.entry(slug, id)
}

// waits until a mail waits for its next attempt, and returns its entry.
func (r *rig) waits(slug string, id int64, attempts int) catalog.MailLog {
	r.t.Helper()
	testrig.Eventually(r.t, fmt.Sprintf("mail %d waits after attempt %d", id, attempts), func() bool {
		e := r.entry(slug, id)
		return e.Attempts == attempts && e.Status == catalog.MailRetrying && !e.NextAttemptAt.IsZero()
	})
	return r.entry(slug, id)
}

// reach moves the clock to a moment.
func (r *rig) reach(t time.Time) { r.clock.forward(t.Sub(r.clock.Now())) }

// settle waits until no attempt is running.
func (r *rig) settle() {
	r.t.Helper()
	testrig.Eventually(r.t, "no attempt is under way", func() bool { return r.Counts().Attempts == 0 })
}

// pass moves the clock in steps, so that timers run at their time.
func (r *rig) pass(d time.Duration) {
	r.t.Helper()
	for end := r.clock.Now().Add(d); r.clock.Now().Before(end); {
		r.clock.forward(min(end.Sub(r.clock.Now()), d/100+time.Second))
		r.settle()
	}
}
