package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"fingerpost/resolver/catalog"
)

func verificationPath(project, domain int64) string {
	return projectPath(project, "/domains/"+strconv.FormatInt(domain, 10)+"/verification")
}

// Verification reads what is known of a domain's verification.
func (c *Client) Verification(ctx context.Context, project, domain int64) (v catalog.VerificationView, err error) {
	_, err = c.platform.call(ctx, http.MethodGet, verificationPath(project, domain), nil, &v)
	return v, err
}

// CheckVerification checks a domain now. Within ten seconds of the last check the server returns what that has found.
func (c *Client) CheckVerification(ctx context.Context, project, domain int64) (v catalog.VerificationView, err error) {
	_, err = c.platform.call(ctx, http.MethodPost, verificationPath(project, domain)+"/check", nil, &v)
	return v, err
}

// DomainRows reads one page of the domains of all projects, as the API has them.
func (c *Client) DomainRows(ctx context.Context, filters url.Values) (Page[json.RawMessage], error) {
	return readPage[json.RawMessage](ctx, c.platform, "/api/platform/domains", filters)
}
