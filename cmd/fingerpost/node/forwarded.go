package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"fingerpost/api"
	"fingerpost/configsrc/cluster"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// answerOver gives a request in its wire form to the API, and returns the answer. Its last header asks to close the
// connection, so the answer ends where the connection does.
func answerOver(p *api.Pipe) func(ctx context.Context, request []byte) ([]byte, error) {
	return func(ctx context.Context, request []byte) ([]byte, error) {
		ours, err := p.Dial(ctx)
		if err != nil {
			return nil, err
		}
		defer ours.Close()
		defer context.AfterFunc(ctx, func() { ours.Close() })()
		go func() { _, _ = ours.Write(request) }() // an answer may come before the body is read
		answer, err := io.ReadAll(ours)
		if err == nil && len(answer) == 0 {
			err = errors.New("the connection ended without an answer")
		}
		return answer, err
	}
}

// An edge is the API's side of a follower. Its errors are for clients.
type edge struct {
	follower   *cluster.Follower
	resolver   *resolver.Resolver
	staleAfter time.Duration
}

// waitApplied is how long a forwarded write may take to come back to this node.
const waitApplied = 5 * time.Second

// Forward implements api.Edge. The answer to a write is returned once this node has applied it, so that the
// client's next read here finds it. If that takes too long it is returned nevertheless: what it says is true.
func (e edge) Forward(ctx context.Context, key string, request []byte) ([]byte, error) {
	answer, at, err := e.follower.Forward(ctx, key, request)
	switch {
	case errors.Is(err, cluster.ErrAway):
		away := &catalog.Error{Code: catalog.CodeUnavailable,
			Message: "the authority of the cluster cannot be reached; nothing was done"}
		if old := (*cluster.VersionError)(nil); errors.As(e.follower.Problem(), &old) {
			away.Message += ": " + old.Error()
		}
		return nil, away
	case errors.Is(err, cluster.ErrNoAnswer):
		return nil, &catalog.Error{Code: catalog.CodeOutcomeUnknown,
			Message: "the authority of the cluster has not answered: it may have done what was asked; the audit trail tells, " +
				"by the request id"}
	case errors.Is(err, cluster.ErrTooLarge):
		return nil, &catalog.Error{Code: catalog.CodeUnavailable,
			Message: "the request is larger than the largest message of the cluster's NATS server (max_payload)"}
	case err != nil:
		return nil, fmt.Errorf("forward the request: %w", err)
	}
	if !bytes.HasPrefix(request, []byte("GET ")) && !bytes.HasPrefix(request, []byte("HEAD ")) {
		ctx, cancel := context.WithTimeout(ctx, waitApplied)
		defer cancel()
		_ = e.resolver.WaitPosition(ctx, at)
	}
	return answer, nil
}

// State implements api.Edge.
func (e edge) State() string {
	st := e.follower.Status()
	text := fmt.Sprintf("%s itself has position %s, and the last word of the authority %s ago", st.Edge, st.Position,
		e.follower.Age(time.Now()).Round(time.Second))
	if !st.Whole {
		text = st.Edge + " itself has no whole tree yet"
	}
	if st.Problem != "" {
		text += "; " + st.Problem
	}
	return text
}

// Age implements api.Edge.
func (e edge) Age(now time.Time) (age time.Duration, shown bool) {
	age = e.follower.Age(now)
	return age, age > e.staleAfter
}
