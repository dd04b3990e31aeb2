package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"fingerpost/mailer"
	"fingerpost/mailer/smtp"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// mailFlags are the flags of serve that concern mail.
type mailFlags struct {
	smtpAllow []string
	budget    time.Duration
	keepText  string
	queue     int
	perQueue  int

	allow []netip.Prefix // smtpAllow
	keep  time.Duration  // keepText
}

func (f *mailFlags) add(fl *pflag.FlagSet) {
	fl.StringSliceVar(&f.smtpAllow, "smtp-allow", nil,
		"networks (CIDR,…) in which SMTP servers may be reached although they are private or loopback, such as 10.0.0.0/8")
	fl.DurationVar(&f.budget, "mail-budget", mailer.DefaultBudget,
		"time that a send waits for the SMTP server before it is answered 202 and goes on by itself")
	fl.IntVar(&f.queue, "mail-queue", mailer.DefaultQueue,
		"number of mails that may wait, over all projects; sends beyond it are answered 429")
	fl.IntVar(&f.perQueue, "mail-queue-per-project", mailer.DefaultQueuePerProject,
		"number of mails of one project that may wait")
	fl.StringVar(&f.keepText, "mail-retention", "90d", "time that entries of the mail log are kept")
}

// maxBudget keeps a send's answer within the time that clients and proxies wait for it.
const maxBudget = 5 * time.Minute

// parse parses the flags that are not plain, and reports all their problems.
func (f *mailFlags) parse() error {
	var bad []string
	f.allow, bad = parseNetworks("--smtp-allow", f.smtpAllow)
	if f.budget <= 0 || f.budget > maxBudget {
		bad = append(bad, fmt.Sprintf("--mail-budget must be more than 0 and at most %s", maxBudget))
	}
	if f.queue <= 0 {
		bad = append(bad, "--mail-queue must be 1 or more")
	}
	if f.perQueue <= 0 {
		bad = append(bad, "--mail-queue-per-project must be 1 or more")
	}
	var err error
	switch f.keep, err = parseLifetime(f.keepText); {
	case err != nil:
		bad = append(bad, fmt.Sprintf("--mail-retention: %v", err))
	case f.keep < 24*time.Hour:
		bad = append(bad, "--mail-retention must be a day or more: idempotency keys and retries live as long")
	}
	return usageAll(bad)
}

// parseNetworks parses the networks of a flag, and reports the problem of each.
func parseNetworks(flag string, texts []string) (networks []netip.Prefix, bad []string) {
	for _, text := range texts {
		network, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err == nil && network == network.Masked() {
			networks = append(networks, network)
			continue
		}
		problem := "is no network in CIDR form such as 10.0.0.0/8 or fd00::/8"
		if err == nil {
			problem = fmt.Sprintf("has bits beyond its length: did you mean %s?", network.Masked())
		} else if a, err := netip.ParseAddr(strings.TrimSpace(text)); err == nil && a.Zone() == "" {
			problem = fmt.Sprintf("is an address: did you mean %s/%d?", a, a.BitLen())
		}
		bad = append(bad, fmt.Sprintf("%s: %q %s", flag, text, problem))
	}
	return networks, bad
}

// A mailService is the mailer with its dependencies.
type mailService struct {
	mailer  *mailer.Mailer
	carrier *smtp.Transport
	stop    context.CancelFunc
	stopped chan struct{} // the goroutine of tellChanges has ended
	closing sync.Once
	failed  error // of close
}

// openMail opens the mail service. Its queue waits for mailer.Release.
func openMail(f mailFlags, data string, r *resolver.Resolver, open func(catalog.Secret, string) (string, error),
	log *slog.Logger) (*mailService, error) {
	ctx, stop := context.WithCancel(context.Background())
	m := &mailService{
		carrier: smtp.NewTransport(smtp.TransportOptions{Allow: f.allow}),
		stop:    stop, stopped: make(chan struct{}),
	}
	disk := &mailDisk{
		dir: data, log: log,
		waiting: func() int64 { return m.mailer.Counts().Waiting },
		reclaim: func() error { return r.ReclaimMail(ctx) },
	}
	var err error
	m.mailer, err = mailer.Open(mailer.Options{
		Ledger: r, Projects: r, Carrier: m.carrier, OpenSecret: open,
		Budget: f.budget, Retention: f.keep, Logger: log, Held: true, Queue: f.queue, QueuePerProject: f.perQueue,
		LowDisk: disk.low,
	})
	if err != nil {
		stop()
		return nil, fmt.Errorf("open the mail service: %w", err)
	}
	go func() {
		defer close(m.stopped)
		tellChanges(ctx, r.Events(), m.mailer.ConfigChanged)
	}()
	return m, nil
}

// tellChanges reports which project's configuration has changed, 0 for any, until ctx ends.
func tellChanges(ctx context.Context, feed *resolver.Feed, changed func(project int64)) {
	cursor, _ := feed.Newest()
	changed(0) // changes between the mailer's start and now
	const atOnce = 256
	var events []*resolver.Event
	for {
		more := feed.Changed()
		for events = cursor.Next(events[:0], atOnce); len(events) > 0; events = cursor.Next(events[:0], atOnce) {
			for _, e := range events {
				if e.Kind != resolver.KeysChanged {
					changed(e.Project)
				}
			}
		}
		select {
		case <-more:
		case <-ctx.Done():
			return
		}
	}
}

// lastWords is how long before the end of the grace period attempts are cut off, so that the mailer has time to store
// that.
const lastWords = 5 * time.Second

// drain is close within a grace period that ends with ctx.
func (m *mailService) drain(ctx context.Context, grace time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, grace-min(grace/4, lastWords))
	defer cancel()
	return m.close(ctx)
}

// close starts no more attempts and waits for the running ones until ctx ends. No mail is lost. The store must be open,
// and may be closed if the result is nil. A second call returns the same; a nil receiver is allowed.
func (m *mailService) close(ctx context.Context) error {
	if m == nil {
		return nil
	}
	m.closing.Do(func() {
		m.stop()
		<-m.stopped
		m.failed = m.mailer.Drain(ctx)
		m.carrier.Close()
	})
	return m.failed
}
