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

// A forwarder carries an edge's requests to the authority, with errors for clients.
type forwarder struct {
	follower *cluster.Follower
	resolver *resolver.Resolver
}

// waitApplied is how long a forwarded write may take to come back to this node.
const waitApplied = 5 * time.Second

// Forward implements api.Forwarder. The answer to a write is returned once this node has applied it, so that the
// client's next read here finds it. If that takes too long it is returned nevertheless: what it says is true.
func (f forwarder) Forward(ctx context.Context, request []byte) ([]byte, error) {
	answer, at, err := f.follower.Forward(ctx, request)
	switch {
	case errors.Is(err, cluster.ErrAway):
		e := &catalog.Error{Code: catalog.CodeUnavailable,
			Message: "the authority of the cluster cannot be reached; nothing was done"}
		if old := (*cluster.VersionError)(nil); errors.As(f.follower.Problem(), &old) {
			e.Message += ": " + old.Error()
		}
		return nil, e
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
		_ = f.resolver.WaitPosition(ctx, at)
	}
	return answer, nil
}
