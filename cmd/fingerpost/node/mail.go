package node

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"fingerpost/mailer"
	"fingerpost/mailer/smtp"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/signedlink"
)

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
func openMail(o Mail, data, publicURL string, r *resolver.Resolver, open func(catalog.Secret, string) (string, error),
	log *slog.Logger) (*mailService, error) {
	ctx, stop := context.WithCancel(context.Background())
	m := &mailService{
		carrier: smtp.NewTransport(smtp.TransportOptions{Allow: o.Allow, HelloName: o.EHLOName}),
		stop:    stop, stopped: make(chan struct{}),
	}
	disk := &mailDisk{
		dir: data, log: log,
		waiting: func() int64 { return m.mailer.Counts().Waiting },
		reclaim: func() error { return r.ReclaimMail(ctx) },
	}
	var unsubscribe func(signedlink.Subscription) (string, error)
	if publicURL != "" {
		links := signedlink.NewRecipients(r)
		unsubscribe = func(of signedlink.Subscription) (string, error) {
			link, err := links.Make(of)
			return strings.TrimRight(publicURL, "/") + signedlink.RecipientPath + link, err
		}
	}
	var err error
	m.mailer, err = mailer.Open(mailer.Options{
		Ledger: r, Projects: r, Carrier: m.carrier, OpenSecret: open,
		Budget: o.Budget, Retention: o.Retention, Logger: log, Held: true, Queue: o.Queue, QueuePerProject: o.QueuePerProject,
		LowDisk: disk.low, Keep: o.Keep, UnsubscribeLink: unsubscribe,
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
