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
	if err := x.fill(f.Project.Fields(), OwnFields(catalog.KindProject)); err != nil {
		return err
	}
	var auth row
	if err := json.Unmarshal(x["authSettings"], &auth); err != nil {
		return fmt.Errorf("field authSettings of the answer: %w", err)
	}
	if err := auth.fill(f.Auth.Fields(), OwnFields(catalog.KindAuthSettings)); err != nil {
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
		fields := slices.DeleteFunc(OwnFields(catalog.KindDomain), func(name string) bool {
			return name == "certificates" && n < len(origin.Domains) && origin.Domains[n].text(name) == "built-in"
		}) // without what the file does not say: its value in force is one that follows from the name
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

// ownBody returns the OwnFields as a request has them: all, if full says that the server's are known, else those with a
// value, so that nothing is removed that was not seen.
func ownBody(fields []catalog.Field, full bool) map[string]any {
	body := map[string]any{}
	for _, f := range fields {
		value := f.Plain()
		labels, isLabels := value.([]catalog.Label)
		switch {
		case !f.Own, f.FileOnly, !full && (value == nil || isLabels && len(labels) == 0):
		case isLabels:
			values := make(map[string]string, len(labels))
			for _, l := range labels {
				values[l.Name] = l.Value
			}
			body[f.Name] = values
		default:
			body[f.Name] = value
		}
	}
	return body
}
