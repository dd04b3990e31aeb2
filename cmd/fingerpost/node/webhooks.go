package node

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fingerpost/api/conditions"
	"fingerpost/mailer/webhook"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// keptDeliveries is how long deliveries of webhooks are kept.
const keptDeliveries = 7 * 24 * time.Hour

// deliversEvents reports whether the node delivers events to webhooks: the one that writes does.
func (n *service) deliversEvents() bool {
	return n.o.Webhooks.On && !n.cluster.isEdge() && !n.o.Files.ReadOnly
}

// openWebhooks makes what delivers events.
func (o *opening) openWebhooks(context.Context) error {
	o.declared = &declaredWebhooks{live: o.resolver, feed: o.resolver.Events(), open: o.secrets.Open, log: o.o.Logger}
	o.webhooks = webhook.New(webhook.Options{
		Hooks: o.declared, Ledger: o.resolver.Records, Allow: o.o.Webhooks.networks(), Version: o.o.Build.Version,
		Commits: o.repo != nil, Logger: o.o.Logger,
	})
	return nil
}

// runWebhooks delivers events until ctx ends. The files have been read: before, no webhook would be known.
func (n *service) runWebhooks(ctx context.Context) (ended chan struct{}) {
	return n.run(func() error {
		if n.deliversEvents() {
			n.delivering.Store(true)
			n.webhooks.Run(ctx)
		}
		return nil
	})
}

// deliveries is what the rest of the node sees of the delivery of events.
type deliveries struct {
	engine     *webhook.Engine
	delivering *atomic.Bool // Run has been called: before, the engine does not answer
}

// statusTime bounds a question to the engine: its ledger may hang with a disk, and /status must not.
const statusTime = time.Second

// AddFacts implements ops.Facts.
func (d deliveries) AddFacts(s *conditions.State) {
	if !d.delivering.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), statusTime)
	defer cancel()
	all, problem, err := d.engine.Status(ctx)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		problem = "the ledger does not answer in time"
	case err != nil:
		problem = err.Error()
	}
	s.WebhookProblem = problem
	for _, w := range all {
		s.Webhooks = append(s.Webhooks, conditions.Webhook{Name: w.Name, Waiting: w.Waiting, Failing: w.Failing,
			Oldest: w.Oldest.UTC(), Behind: w.Behind, OffSince: w.OffSince.UTC(), OffReason: w.OffReason, DeadAt: w.DeadAt.UTC(),
			GapAt: w.GapAt.UTC(), NoSecret: w.NoSecret})
	}
}

// declaredWebhooks are the webhooks of the files, with their secrets opened.
type declaredWebhooks struct {
	live interface {
		Webhooks() []catalog.Webhook
		ProjectByID(id int64) (*catalog.Project, error)
	}
	feed *resolver.Feed
	open func(s catalog.Secret, context string) (string, error)
	log  *slog.Logger

	mu    sync.Mutex // guards the fields below
	of    []catalog.Webhook
	hooks []webhook.Hook
	known slugOf
}

// A slugOf is the slug of the project that was asked for last: most events are looked at by many webhooks in a row.
type slugOf struct {
	project int64
	at      time.Time
	slug    string
}

// slugTime is how old a known slug may be.
const slugTime = time.Second

// Webhooks implements webhook.Hooks.
func (d *declaredWebhooks) Webhooks() (hooks []webhook.Hook, changed <-chan struct{}, known bool) {
	changed = d.feed.Changed()
	list := d.live.Webhooks()
	d.mu.Lock()
	defer d.mu.Unlock()
	same := len(list) == len(d.of) && (len(list) == 0 || &list[0] == &d.of[0])
	if !same || d.hooks == nil {
		d.of, d.hooks = list, make([]webhook.Hook, len(list))
		for i := range list {
			d.hooks[i] = d.hook(&list[i])
		}
	}
	return d.hooks, changed, true
}

// forget has the secrets opened again: the content of their files may have changed.
func (d *declaredWebhooks) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hooks = nil
}

// hook returns a webhook with the secrets that can be opened. Without one it waits.
func (d *declaredWebhooks) hook(w *catalog.Webhook) webhook.Hook {
	h := webhook.Hook{Name: w.Name, URL: w.URL, Active: w.Active, Wants: w.Wants, EveryProject: w.Projects == nil,
		Version: resolver.WebhookETag(w)}
	for _, s := range w.Secrets {
		text, err := d.open(s, w.SecretContext())
		var key []byte
		if err == nil {
			key, err = catalog.ParseWebhookSecret(text)
		}
		if err != nil {
			d.log.Warn("a secret of a webhook cannot be used", "webhook", w.Name, "error", err)
			continue
		}
		h.Secrets = append(h.Secrets, key)
	}
	h.Covers = func(project int64, slug string) bool {
		return slug != "" && slices.Contains(w.Projects, slug) || slices.Contains(w.Projects, d.slug(project))
	}
	return h
}

// slug returns the present slug of a project, "" if there is none.
func (d *declaredWebhooks) slug(project int64) string {
	d.mu.Lock()
	known := d.known
	d.mu.Unlock()
	if known.project == project && time.Since(known.at) < slugTime {
		return known.slug
	}
	known = slugOf{project: project, at: time.Now()}
	if p, err := d.live.ProjectByID(project); err == nil {
		known.slug = p.Slug
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known = known
	return known.slug
}

// pruneWebhooks deletes the deliveries that are kept no longer.
func pruneWebhooks(r *resolver.Resolver, now time.Time, log *slog.Logger) {
	if err := r.PruneHooks(now.Add(-keptDeliveries)); err != nil {
		log.Debug("deliveries of webhooks stay for now", "error", err)
	}
}
