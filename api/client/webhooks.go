package client

import (
	"context"
	"fmt"
	"net/http"

	"fingerpost/resolver/catalog"
)

const webhooksPath = "/api/platform/webhooks"

// A Webhook is a webhook as the API answers it, without its secrets.
type Webhook struct {
	UUID     catalog.UUID
	Name     string
	URL      string
	Events   []string // nil: everything but mail.*
	Projects []string // slugs; nil: every project
	Active   bool
	Secrets  int // how many it has
}

// Webhooks lists the webhooks. It needs a key with write and secrets on every project.
func (c *Client) Webhooks(ctx context.Context) (list []Webhook, err error) {
	_, err = c.platform.call(ctx, http.MethodGet, webhooksPath, nil, &list)
	return list, err
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
