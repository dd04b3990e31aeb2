package client

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// An Event is a change that has gone live.
type Event struct {
	Name     string   `json:"-"` // such as project.changed
	Position string   `json:"-"` // every node that has reached it gives an answer as new as the event
	Slug     string   // of the project
	Domains  []string // that changed, or lead to another answer
}

// Events calls each with every change from now on, until the server ends the stream, or ctx or each does: with an
// error.
func (c *Client) Events(ctx context.Context, each func(Event) error) error {
	const path = "/api/platform/events"
	req, err := c.platform.made(ctx, &request{method: http.MethodGet, path: path}, nil)
	if err != nil {
		return err
	}
	res, err := c.platform.http.Transport.RoundTrip(req) // without the timeout, which covers the whole answer
	if err != nil {
		return netError(http.MethodGet, path, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return &Error{Method: http.MethodGet, Path: path, Status: res.StatusCode}
	}
	e := Event{}
	in := bufio.NewScanner(res.Body)
	for in.Scan() {
		l := in.Text()
		if name, is := strings.CutPrefix(l, "event: "); is {
			e.Name = name
		} else if id, is := strings.CutPrefix(l, "id: "); is {
			e.Position = id
		} else if data, is := strings.CutPrefix(l, "data: "); is {
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				return fmt.Errorf("read an event of %s: %w", path, err)
			}
		} else if l == "" && e.Name != "" {
			if err := each(e); err != nil {
				return err
			}
			e = Event{}
		}
	}
	return in.Err()
}
