package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"fingerpost/resolver/catalog"
)

// full adds what only view=full returns: the project's labels, and the certificates and proofs of its domains. A service
// without this view answers with the plain row, or refuses the query.
func (c *Client) full(ctx context.Context, f *Project) error {
	if c.plainOnly.Load() {
		return nil
	}
	var x row
	path := projectPath(f.Project.ID, "?view=full")
	_, err := c.platform.callAgain(ctx, http.MethodGet, path, nil, &x, http.StatusTooManyRequests)
	switch {
	case Status(err, http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusServiceUnavailable):
		return nil
	case err != nil:
		return err
	}
	if _, told := x["labels"]; !told {
		c.plainOnly.Store(true)
		return nil
	}
	if err := f.fillFull(x); err != nil {
		return fmt.Errorf("GET %s: %w", path, err)
	}
	f.Full = true
	return nil
}

func (f *Project) fillFull(x row) error {
	if err := x.fill(f.Project.Fields(), []string{"labels", "owner"}); err != nil {
		return err
	}
	var domains []row
	if err := json.Unmarshal(x["domains"], &domains); err != nil {
		return fmt.Errorf("field domains of the answer: %w", err)
	}
	var origin struct{ Domains []row }
	if err := json.Unmarshal(x["origin"], &origin); err != nil {
		return fmt.Errorf("field origin of the answer: %w", err)
	}
	for n, d := range domains {
		fields := []string{"certificates", "verified"}
		if n < len(origin.Domains) && origin.Domains[n].text("certificates") == "built-in" {
			fields = fields[1:] // the file does not say it
		}
		name := d.text("domain")
		i := slices.IndexFunc(f.Domains, func(known catalog.Domain) bool { return known.Name == name })
		if i < 0 {
			continue // declared since the list was read
		}
		if err := d.fill(f.Domains[i].Fields(), fields); err != nil {
			return err
		}
	}
	return nil
}

// labelsBody returns labels as a request has them. A server without labels ignores them.
func labelsBody(labels []catalog.Label) map[string]any {
	values := make(map[string]string, len(labels))
	for _, l := range labels {
		values[l.Name] = l.Value
	}
	return map[string]any{"labels": values}
}
