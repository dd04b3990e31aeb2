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
	"fingerpost/resolver/rowjson"
)

// keptDeliveries is how long deliveries of webhooks are kept.
const keptDeliveries = 7 * 24 * time.Hour

// deliversEvents reports whether the node delivers events to webhooks: the one that writes does.
func (n *service) deliversEvents() bool {
	return n.o.Webhooks.On && !n.cluster.isEdge() && !n.o.Files.ReadOnly
}

// openWebhooks makes what delivers events.
func (o *opening) openWebhooks(context.Context) error {
	o.declared = &declaredWebhooks{live: o.resolver, trail: o.resolver.Records, feed: o.resolver.Events(),
		open: o.secrets.Open, log: o.o.Logger}
	o.webhooks = webhook.New(webhook.Options{
		Hooks: o.declared, Ledger: o.resolver.Records, Allow: o.o.Allow.Webhooks.List(), Version: o.o.Build.Version,
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
	trail webhook.Trail
	feed  *resolver.Feed
	open  func(s catalog.Secret, context string) (string, error)
	log   *slog.Logger

	mu    sync.Mutex // guards the fields below
	of    []catalog.Webhook
	hooks []webhook.Hook
	known knownProject
}

// A knownProject is the project that was asked for last: most events are looked at by many webhooks in a row. It is
// forgotten when webhooks change, as a rename or a deletion of the project changes their lists.
type knownProject struct {
	id     int64
	at     time.Time
	slug   string   // "": it is gone
	lostBy []string // webhooks from whose lists the deletion of the project has taken its slug
}

// knownTime is how old what is known of a project may be.
const knownTime = time.Second

// Webhooks implements webhook.Hooks.
func (d *declaredWebhooks) Webhooks() (hooks []webhook.Hook, changed <-chan struct{}, known bool) {
	changed = d.feed.Changed()
	list := d.live.Webhooks()
	d.mu.Lock()
	defer d.mu.Unlock()
	same := len(list) == len(d.of) && (len(list) == 0 || &list[0] == &d.of[0])
	if !same || d.hooks == nil {
		d.of, d.hooks, d.known = list, make([]webhook.Hook, len(list)), knownProject{}
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
		Version: rowjson.WebhookETag(w)}
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
		if slug != "" && slices.Contains(w.Projects, slug) {
			return true
		}
		p := d.project(project)
		return slices.Contains(w.Projects, p.slug) || slices.Contains(p.lostBy, w.Name)
	}
	return h
}

// project returns what is known of a project at present.
func (d *declaredWebhooks) project(id int64) knownProject {
	d.mu.Lock()
	known, of := d.known, d.of
	d.mu.Unlock()
	if known.id == id && time.Since(known.at) < knownTime {
		return known
	}
	known = knownProject{id: id, at: time.Now()}
	p, err := d.live.ProjectByID(id)
	if err == nil {
		known.slug = p.Slug
	} else if catalog.IsNotFound(err) {
		known.lostBy, err = d.lostBy(id)
	}
	if err != nil {
		d.log.Warn("whether webhooks have a project in their lists is not known", "project", id, "error", err)
		return known
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(of) == len(d.of) && (len(of) == 0 || &of[0] == &d.of[0]) {
		d.known = known
	}
	return known
}

// lostBy finds the webhooks from whose lists the deletion of a project has taken its slug: the trail tells of both in one
// generation. What happened to the project is judged by the lists before.
func (d *declaredWebhooks) lostBy(project int64) (hooks []string, err error) {
	var end catalog.AuditEntry
	err = d.trail.ProjectEntriesSince(project, 0, func(e *catalog.AuditEntry) (more bool) {
		if e.Action == "project.delete" {
			end = *e
		}
		return true
	})
	first := end.ID
	for same := err == nil && end.ID != 0; same; {
		var e catalog.AuditEntry
		if e, same, err = d.trail.AuditEntry(first - 1); same && err == nil {
			if same = e.Generation == end.Generation; same {
				first--
			}
		}
	}
	if err != nil || end.ID == 0 {
		return nil, err
	}
	err = d.trail.EntriesSince(first-1, func(e *catalog.AuditEntry) (more bool) {
		if e.Action == "webhook.update" && e.Generation == end.Generation && hadInList(e, end.Slug) {
			hooks = append(hooks, e.Object)
		}
		return e.Generation == end.Generation
	})
	return hooks, err
}

// hadInList reports whether an entry tells that a list of projects had a slug before.
func hadInList(e *catalog.AuditEntry, slug string) bool {
	return slices.ContainsFunc(e.Changes, func(c catalog.FieldChange) bool {
		list, is := c.Before.([]string)
		return c.Field == "projects" && is && slices.Contains(list, slug)
	})
}

// pruneWebhooks deletes the deliveries that are kept no longer.
func pruneWebhooks(r *resolver.Resolver, now time.Time, log *slog.Logger) {
	if err := r.PruneHooks(now.Add(-keptDeliveries)); err != nil {
		log.Debug("deliveries of webhooks stay for now", "error", err)
	}
}
