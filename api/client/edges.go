package client

import (
	"context"
	"net/http"
)

// An Edge is a node that follows the authority of a cluster.
type Edge struct {
	Name       string  `json:"name"`
	Version    string  `json:"version"`
	Position   string  `json:"position"`
	Generation uint64  `json:"generation"`
	Current    bool    `json:"current"`
	LagMS      float64 `json:"lagMs"`
	BeatAgeMS  float64 `json:"beatAgeMs"`
	Ready      bool    `json:"ready"`
	Problem    string  `json:"problem"`
}

// Edges lists the edges of the server's cluster. A server without one answers 404.
func (c *Client) Edges(ctx context.Context) (edges []Edge, err error) {
	_, err = c.platform.call(ctx, http.MethodGet, "/api/platform/edges", nil, &edges)
	return edges, err
}
