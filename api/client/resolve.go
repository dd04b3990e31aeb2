package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// A Resolution is the server's answer about one domain.
type Resolution struct {
	ID      int64           // of the project
	Slug    string          // of the project
	Name    string          // of the project
	Status  string          // of the project
	Matched string          // the domain that matched, perhaps a wildcard
	Data    json.RawMessage // the whole answer
}

// Resolve asks which project a domain belongs to. The statuses 400, 403 and 404 of an *Error say something about the
// domain.
func (c *Client) Resolve(ctx context.Context, domain string) (Resolution, error) {
	var r Resolution
	if _, err := c.platform.call(ctx, http.MethodGet, projectsPath+"/resolve?domain="+url.QueryEscape(domain), nil,
		&r.Data); err != nil {
		return r, err
	}
	var data struct {
		Project struct {
			ID                 int64
			Slug, Name, Status string
		}
		MatchedDomain struct{ Domain string }
	}
	if err := json.Unmarshal(r.Data, &data); err != nil {
		return r, fmt.Errorf("read the answer of %s: %w", c.URL(), err)
	}
	p := &data.Project
	r.ID, r.Slug, r.Name, r.Status, r.Matched = p.ID, p.Slug, p.Name, p.Status, data.MatchedDomain.Domain
	return r, nil
}

// ResolveFlat is Resolve in the flat form, which has the settings in full: the answer as the server gives it.
func (c *Client) ResolveFlat(ctx context.Context, domain string) (answer json.RawMessage, err error) {
	_, err = c.platform.call(ctx, http.MethodGet, projectsPath+"/resolve?form=flat&domain="+url.QueryEscape(domain), nil,
		&answer)
	return answer, err
}

// ErrUnexplained is returned by Explain for a server that does not know where values come from.
var ErrUnexplained = errors.New("the answer has no origin")

// Explain returns a project in full, with the origin of each value.
func (c *Client) Explain(ctx context.Context, project int64) (json.RawMessage, error) {
	var full json.RawMessage
	if _, err := c.platform.view(ctx, projectPath(project, "?view=full"), &full); err != nil {
		return nil, err
	}
	var data struct{ Origin map[string]json.RawMessage }
	if err := json.Unmarshal(full, &data); err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", c.URL(), err)
	}
	if data.Origin == nil {
		return nil, ErrUnexplained
	}
	return full, nil
}
