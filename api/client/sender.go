package client

import (
	"context"
	"net/http"

	"fingerpost/resolver/catalog"
)

// CheckSender checks what receivers find of a project's sender now. With an address, "" for none, it also says what they
// find of a relay there. Within ten seconds of the last check the server returns what that has found.
func (c *Client) CheckSender(ctx context.Context, project int64, address string) (r catalog.SenderResult, err error) {
	body := map[string]any{}
	if address != "" {
		body["address"] = address
	}
	_, err = c.mail.call(ctx, http.MethodPost, mailPath(project, "/sender-check"), body, &r)
	return r, err
}
