package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
)

// A Resolution is the server's answer about one domain.
type Resolution struct {
	Slug    string          // of the project
	Matched string          // the domain that matched, perhaps a wildcard
	Data    json.RawMessage // the whole answer
}

// Resolve asks which project a domain belongs to. The statuses 400, 403 and 404 of an *Error say something about the
// domain.
func (c *Client) Resolve(ctx context.Context, domain string) (Resolution, error) {
	var r Resolution
	if _, err := c.platform.call(ctx, http.MethodGet, projectsPath+"/resolve?domain="+url.QueryEscape(domain), nil, &r.Data); err != nil {
		return r, err
	}
	var data struct {
		Project       struct{ Slug string }
		MatchedDomain struct{ Domain string }
	}
	if err := json.Unmarshal(r.Data, &data); err != nil {
		return r, fmt.Errorf("read the answer of %s: %w", c.URL(), err)
	}
	r.Slug, r.Matched = data.Project.Slug, data.MatchedDomain.Domain
	return r, nil
}
