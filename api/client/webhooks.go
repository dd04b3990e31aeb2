package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"fingerpost/resolver/catalog"
)

const webhooksPath = "/api/platform/webhooks"

// A Webhook is a webhook as the API answers it, without its secrets.
type Webhook struct {
	UUID     catalog.UUID     `json:"uuid"`
	Name     string           `json:"name"`
	URL      string           `json:"url"`
	Events   []string         `json:"events"`   // nil: everything but mail.*
	Projects []string         `json:"projects"` // slugs; nil: every project
	Active   bool             `json:"active"`
	Secrets  int              `json:"secrets"`            // how many it has
	Delivery *WebhookStanding `json:"delivery,omitempty"` // of lists; nil: the server does not tell it
}

// A WebhookStanding is how a webhook does.
type WebhookStanding struct {
	State     string  `json:"state"` // on; off: by itself; inactive: as the files say
	OffReason *string `json:"offReason"`
	OffSince  *string `json:"offSince"`
	Waiting   int     `json:"waiting"` // projects
	Failing   int     `json:"failing"` // of them
	Oldest    *string `json:"oldest"`
	Last      *struct {
		ID        string  `json:"id"`
		Event     string  `json:"event"`
		Object    *string `json:"object"`
		State     string  `json:"state"`
		CreatedAt string  `json:"createdAt"`
	} `json:"last"` // the latest delivery that is kept
}

// A WebhookDelivery is an event at a webhook.
type WebhookDelivery struct {
	ID            string           `json:"id"`
	Event         string           `json:"event"`
	Object        *string          `json:"object"`
	Entry         *int64           `json:"entry"` // of the audit trail
	ProjectID     *int64           `json:"projectId"`
	State         string           `json:"state"`
	CreatedAt     string           `json:"createdAt"`
	NextAttemptAt *string          `json:"nextAttemptAt"`
	Attempts      []WebhookAttempt `json:"attempts"`
}

// A WebhookAttempt is one attempt of a delivery.
type WebhookAttempt struct {
	Time string `json:"time"`
	WebhookOutcome
}

// A WebhookOutcome is what has become of an attempt.
type WebhookOutcome struct {
	Status *int    `json:"status"` // of HTTP; nil: no answer came
	Millis int64   `json:"ms"`
	Answer *string `json:"answer"` // its beginning
	Error  *string `json:"error"`  // nil: it was delivered
}

// A WebhookTest is what has become of a test.
type WebhookTest struct {
	Delivered bool `json:"delivered"`
	WebhookOutcome
}

// A WebhookSecret is what the creation or the rotation of a webhook is answered with. Nothing tells the secret again.
type WebhookSecret struct {
	Webhook
	Secret        string  `json:"secret,omitempty"` // "": the request had one
	OverlapEndsAt *string `json:"overlapEndsAt,omitempty"`
}

// Webhooks lists the webhooks. It needs a key with write and secrets on every project.
func (c *Client) Webhooks(ctx context.Context) (list []Webhook, err error) {
	_, err = c.platform.call(ctx, http.MethodGet, webhooksPath, nil, &list)
	return list, err
}

func webhookPath(name, call string) string { return webhooksPath + "/" + url.PathEscape(name) + call }

// CreateWebhook creates a webhook with the fields that w has. Without a secret the server makes one.
func (c *Client) CreateWebhook(ctx context.Context, w *Webhook, secret string) (made WebhookSecret, err error) {
	body := map[string]any{"name": w.Name, "url": w.URL, "events": w.Events, "projects": w.Projects, "active": w.Active}
	if secret != "" {
		body["secret"] = secret
	}
	_, err = c.platform.call(ctx, http.MethodPost, webhooksPath, body, &made)
	return made, err
}

// UpdateWebhook gives a webhook the fields that w has. Its secrets stay.
func (c *Client) UpdateWebhook(ctx context.Context, w *Webhook) error {
	body := map[string]any{"url": w.URL, "events": w.Events, "projects": w.Projects, "active": w.Active}
	_, err := c.platform.call(ctx, http.MethodPut, webhookPath(w.Name, ""), body, nil)
	return err
}

// WebhookOf returns a declared webhook as the API answers it.
func WebhookOf(w *catalog.Webhook) *Webhook {
	return &Webhook{UUID: w.UUID, Name: w.Name, URL: w.URL, Events: w.Events, Projects: w.Projects, Active: w.Active,
		Secrets: len(w.Secrets)}
}

// DeleteWebhook removes a webhook.
func (c *Client) DeleteWebhook(ctx context.Context, name string) error {
	_, err := c.platform.call(ctx, http.MethodDelete, webhookPath(name, ""), nil, nil)
	return err
}

// RotateWebhook gives a webhook a new secret. The older ones stay for the overlap, such as "24h".
func (c *Client) RotateWebhook(ctx context.Context, name, overlap string) (made WebhookSecret, err error) {
	_, err = c.platform.call(ctx, http.MethodPost, webhookPath(name, "/rotate"), map[string]any{"overlap": overlap}, &made)
	return made, err
}

// ResumeWebhook switches a webhook on that was switched off by itself.
func (c *Client) ResumeWebhook(ctx context.Context, name string) (w Webhook, err error) {
	_, err = c.platform.call(ctx, http.MethodPost, webhookPath(name, "/resume"), nil, &w)
	return w, err
}

// TestWebhook sends a webhook a test event.
func (c *Client) TestWebhook(ctx context.Context, name string) (out WebhookTest, err error) {
	_, err = c.platform.call(ctx, http.MethodPost, webhookPath(name, "/test"), nil, &out)
	return out, err
}

// A WebhookReplay says what is sent again: a delivery, else what happened in a time, in the API's form. No To: until now.
type WebhookReplay struct {
	ID   string `json:"id,omitempty"`
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// ReplayWebhook sends events again, and returns how many.
func (c *Client) ReplayWebhook(ctx context.Context, name string, q WebhookReplay) (count int, err error) {
	var answer struct{ Count int }
	_, err = c.platform.call(ctx, http.MethodPost, webhookPath(name, "/replay"), q, &answer)
	return answer.Count, err
}

// WebhookDeliveries reads one page of the deliveries of a webhook, the latest first. filters are those of the API's
// reference.
func (c *Client) WebhookDeliveries(ctx context.Context, name string, filters url.Values) (Page[WebhookDelivery], error) {
	return readPage[WebhookDelivery](ctx, c.platform, webhookPath(name, "/deliveries"), filters)
}

// DeclaredWebhooks lists the webhooks as files would declare them, without secrets. told is false if the server does not
// tell them: it has no such call, or the key may not make it.
func (c *Client) DeclaredWebhooks(ctx context.Context) (list []catalog.Webhook, told bool, err error) {
	all, err := c.Webhooks(ctx)
	switch {
	case Absent(err), Status(err, http.StatusForbidden):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}
	for _, w := range all {
		if msg := catalog.CheckSlug(w.Name); msg != "" {
			return nil, false, fmt.Errorf("GET %s: the name of a webhook %s", webhooksPath, msg)
		}
		list = append(list, catalog.Webhook{Name: w.Name, UUID: w.UUID, URL: w.URL, Events: w.Events, Projects: w.Projects,
			Active: w.Active})
	}
	return list, true, nil
}
