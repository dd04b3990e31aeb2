package client

import (
	"context"
	"net/http"
	"net/url"
)

// A Suppression is an entry of a project's suppression list.
type Suppression struct {
	Address   string  `json:"address"`
	Reason    string  `json:"reason"`
	Category  *string `json:"category"`
	Note      *string `json:"note"`
	CreatedAt string  `json:"createdAt"`
	By        *string `json:"by"` // nil: the service itself, or the recipient
}

// A NewSuppression is an entry to add. Empty fields are not sent.
type NewSuppression struct {
	Address  string `json:"address"`
	Reason   string `json:"reason,omitempty"` // "": manual
	Category string `json:"category,omitempty"`
	Note     string `json:"note,omitempty"`
}

// A SuppressionsAdded says how many entries of a list are new, and how many were there.
type SuppressionsAdded struct {
	Added   int `json:"added"`
	Present int `json:"present"`
}

func suppressionsPath(project int64) string { return mailPath(project, "/suppressions") }

// Suppressions reads one page of a project's list, by address. filters are those of the API's reference.
func (c *Client) Suppressions(ctx context.Context, project int64, filters url.Values) (Page[Suppression], error) {
	return readPage[Suppression](ctx, c.mail, suppressionsPath(project), filters)
}

// Suppress adds an entry to a project's list, and returns it as the list has it. One that is there stays as it is.
func (c *Client) Suppress(ctx context.Context, project int64, s NewSuppression) (is Suppression, err error) {
	_, err = c.mail.call(ctx, http.MethodPost, suppressionsPath(project), s, &is)
	return is, err
}

// SuppressAll adds up to catalog.MaxSuppressionsAtOnce entries, all or none.
func (c *Client) SuppressAll(ctx context.Context, project int64, list []NewSuppression) (n SuppressionsAdded, err error) {
	_, err = c.mail.call(ctx, http.MethodPost, suppressionsPath(project), map[string]any{"suppressions": list}, &n)
	return n, err
}

// Release removes the entries of an address, or those with a reason and a category alone, and returns how many.
func (c *Client) Release(ctx context.Context, project int64, address, reason, category string) (removed int, err error) {
	q := url.Values{"address": {address}}
	for name, value := range map[string]string{"reason": reason, "category": category} {
		if value != "" {
			q.Set(name, value)
		}
	}
	var answer struct{ Removed int }
	_, err = c.mail.call(ctx, http.MethodDelete, suppressionsPath(project)+"?"+q.Encode(), nil, &answer)
	return answer.Removed, err
}
