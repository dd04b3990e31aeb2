package console

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"fingerpost/api/client"
	"fingerpost/api/console/say"
	"fingerpost/mailer/webhook"
	"fingerpost/resolver/records"
)

// Webhooks is what this node knows of deliveries beyond the answers of the API; *webhook.Engine has it.
type Webhooks interface {
	Status(ctx context.Context) (all []webhook.Status, problem string, err error)
	LastDelivery(name string) (d records.HookDelivery, found bool, err error)
	Request(name, id string) (webhook.Request, error)
}

// webhookPage is the path that leads to a webhook's page, "" to the list of them.
func webhookPage(name string) string {
	if name == "" {
		return Prefix + "webhooks"
	}
	return Prefix + "webhooks/" + name
}

// A webhookRow is a webhook with how it does.
type webhookRow struct {
	client.Webhook
	Status webhook.Status
	Known  bool // the status is
	State  say.State
	Last   *lastDelivery // nil: none is kept
}

// Off reports whether the webhook was switched off by itself, and waits for a person.
func (r webhookRow) Off() bool { return r.Active && !r.Status.OffSince.IsZero() }

// Sends reports whether it can be asked to send again.
func (r webhookRow) Sends() bool { return r.Known && r.Active && r.Status.OffSince.IsZero() }

// NoProject reports whether its list of projects is empty, so that nothing is sent.
func (r webhookRow) NoProject() bool { return r.Projects != nil && len(r.Projects) == 0 }

// Behind is how many entries of the trail the webhook has not come to yet.
func (r webhookRow) Behind() int { return int(r.Status.Behind) }

// Waits says how much waits for the receiver, "" for nothing.
func (r webhookRow) Waits() string { return say.Waits(r.Status.Waiting) }

// A webhooksView lists the webhooks.
type webhooksView struct {
	Rows []webhookRow
	deliverer
}

// A deliverer is what is known of who delivers.
type deliverer struct {
	Delivers bool   // this node does
	Why      string // nothing is delivered or known; "": it is
}

// statusTime bounds the question how webhooks do: their ledger may hang with a disk.
const statusTime = time.Second

// hookStatus returns how the active webhooks do.
func (c *Console) hookStatus(ctx context.Context) (all []webhook.Status, d deliverer) {
	switch {
	case c.o.Webhooks == nil && c.o.Edge:
		return nil, deliverer{Why: "This is an edge: its authority delivers events, and its console shows how webhooks do."}
	case c.o.Webhooks == nil:
		return nil, deliverer{Why: "This service delivers no events: it runs with --webhooks=false, or only reads its " +
			"files. Once it delivers again, it goes on where it was."}
	}
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	all, problem, err := c.o.Webhooks.Status(ctx)
	d.Delivers = true
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		d.Why = "How webhooks do is not known at the moment: their ledger does not answer in time."
	case err != nil:
		d.Why = "How webhooks do is not known at the moment: " + reason(err)
	case problem != "":
		d.Why = "Nothing is delivered at the moment, and all events wait: " + problem + "."
	}
	return all, d
}

// rowOf says how a webhook does.
func (c *Console) rowOf(w *client.Webhook, all []webhook.Status) webhookRow {
	row := webhookRow{Webhook: *w}
	if i := slices.IndexFunc(all, func(s webhook.Status) bool { return s.Name == w.Name }); i >= 0 {
		row.Known, row.Status = true, all[i]
	}
	st := &row.Status
	row.State = say.HookState(&say.Hook{Active: w.Active, Known: row.Known, OffSince: st.OffSince, Waiting: st.Waiting,
		FailingSince: st.FailingSince})
	if c.o.Webhooks == nil {
		return row
	}
	if d, found, err := c.o.Webhooks.LastDelivery(w.Name); err == nil && found {
		row.Last = &lastDelivery{ID: d.ID, Event: d.Event, Created: d.Created,
			State: say.DeliveryState(d.State), Next: c.nextTry(d.NextAttemptAt)}
	}
	return row
}

func (c *Console) webhooks(w http.ResponseWriter, r *http.Request, s *session) error {
	list, err := c.webhookList(r.Context(), s)
	if err != nil {
		return err
	}
	all, d := c.hookStatus(r.Context())
	v := webhooksView{deliverer: d}
	for i := range list {
		v.Rows = append(v.Rows, c.rowOf(&list[i], all))
	}
	return c.render(w, r, s, http.StatusOK, "webhooks", "Webhooks", v)
}

// webhookList lists the webhooks for a session that may see them.
func (c *Console) webhookList(ctx context.Context, s *session) ([]client.Webhook, error) {
	if !c.may(s).Webhooks {
		return nil, s.Key().refuseWebhooks()
	}
	return c.api(s).Webhooks(ctx)
}
