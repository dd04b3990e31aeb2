package client

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// A Target is what the edges of a cluster are to have.
type Target struct {
	commit     string // until its position is known
	epoch      string // "": any
	generation uint64
}

var fullCommit = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// ParseTarget parses a generation, a position EPOCH.GENERATION, or the full id of a commit.
func ParseTarget(text string) (w Target, err error) {
	if fullCommit.MatchString(text) {
		return Target{commit: text}, nil
	}
	digits := text
	if before, after, found := strings.Cut(text, "."); found {
		w.epoch, digits = before, after
	}
	w.generation, err = strconv.ParseUint(digits, 10, 64)
	return w, err
}

// locate finds out the position of the commit, if it is live.
func (w *Target) locate(ctx context.Context, c *Client) error {
	found, err := c.Commit(ctx, w.commit)
	if Status(err, http.StatusNotFound) {
		return nil
	}
	if err == nil {
		epoch, _, _ := strings.Cut(found.Position, ".")
		*w = Target{epoch: epoch, generation: found.Generation}
	}
	return err
}

// Behind names the ready edges that do not have what they are to have, or says that the authority does not have the
// commit yet.
func (c *Client) Behind(ctx context.Context, edges []Edge, w *Target) (late []string, err error) {
	if w.commit != "" {
		if err := w.locate(ctx, c); err != nil {
			return nil, err
		}
	}
	if w.commit != "" {
		return []string{"the commit is not live on the authority"}, nil
	}
	for _, e := range edges {
		has := e.Generation >= w.generation && (w.epoch == "" || strings.HasPrefix(e.Position, w.epoch+"."))
		if e.Ready && !has {
			late = append(late, fmt.Sprintf("%s has %d", e.Name, e.Generation))
		}
	}
	return late, nil
}
