package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"fingerpost/resolver/catalog"
)

// An Outcome is what has become of a request to a webhook's receiver.
type Outcome struct {
	Status *int    `json:"status"` // of HTTP; nil: no answer came
	Millis int64   `json:"ms"`
	Answer *string `json:"answer"` // its beginning
	Error  *string `json:"error"`  // nil: it was delivered
}

// A Delivery is an event at a webhook.
type Delivery struct {
	ID            string    `json:"id"` // webhook-id
	Event         string    `json:"event"`
	Object        *string   `json:"object"`
	Entry         *int64    `json:"entry"` // of the audit trail; nil: it tells of none
	ProjectID     *int64    `json:"projectId"`
	State         string    `json:"state"`
	CreatedAt     string    `json:"createdAt"`
	NextAttemptAt *string   `json:"nextAttemptAt"`
	Attempts      []Attempt `json:"attempts"`
}

// An Attempt is one of a Delivery.
type Attempt struct {
	Time string `json:"time"`
	Outcome
}

// A Tested is what has become of a test event.
type Tested struct {
	Delivered bool `json:"delivered"`
	Outcome
}

func webhookPath(name, rest string) string { return webhooksPath + "/" + url.PathEscape(name) + rest }

// Deliveries reads one page of a webhook's deliveries, the latest first. filters are those of the API's reference.
func (c *Client) Deliveries(ctx context.Context, webhook string, filters url.Values) (Page[Delivery], error) {
	return readPage[Delivery](ctx, c.platform, webhookPath(webhook, "/deliveries"), filters)
}

// TestWebhook sends a test event to a webhook. It is not repeated, and not kept.
func (c *Client) TestWebhook(ctx context.Context, webhook string) (t Tested, err error) {
	_, err = c.platform.call(ctx, http.MethodPost, webhookPath(webhook, "/test"), nil, &t)
	return t, err
}

// ResumeWebhook switches a webhook on that was switched off by itself.
func (c *Client) ResumeWebhook(ctx context.Context, webhook string) error {
	_, err := c.platform.call(ctx, http.MethodPost, webhookPath(webhook, "/resume"), nil, nil)
	return err
}

// ReplayDelivery sends a kept delivery again.
func (c *Client) ReplayDelivery(ctx context.Context, webhook, id string) error {
	_, err := c.replay(ctx, webhook, map[string]string{"id": id})
	return err
}

// ReplayTime sends the events of a time again that a webhook wants now, and returns how many they are. to zero: until now.
func (c *Client) ReplayTime(ctx context.Context, webhook string, from, to time.Time) (count int, err error) {
	body := map[string]string{"from": catalog.Moment(from)}
	if !to.IsZero() {
		body["to"] = catalog.Moment(to)
	}
	return c.replay(ctx, webhook, body)
}

func (c *Client) replay(ctx context.Context, webhook string, what map[string]string) (int, error) {
	var answer struct{ Count int }
	_, err := c.platform.call(ctx, http.MethodPost, webhookPath(webhook, "/replay"), what, &answer)
	return answer.Count, err
}
