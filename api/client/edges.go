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

// A Commit is a git commit that is live on the server.
type Commit struct {
	Position   string `json:"position"` // of which every node that has it has the commit
	Generation uint64 `json:"generation"`
}

// Commit finds a commit by its full id. A server answers 404 until it is live, and 409 if it keeps no git history.
func (c *Client) Commit(ctx context.Context, id string) (found Commit, err error) {
	_, err = c.platform.call(ctx, http.MethodGet, "/api/platform/commits/"+id, nil, &found)
	return found, err
}

// Edges lists the edges of the server's cluster. A server without one answers 404, and an edge whose authority is away
// 503, which is not asked again.
func (c *Client) Edges(ctx context.Context) (edges []Edge, err error) {
	_, err = c.platform.callAgain(ctx, http.MethodGet, "/api/platform/edges", nil, &edges, http.StatusTooManyRequests)
	return edges, err
}
