package api

import (
	"sync/atomic"

	"fingerpost/resolver/catalog"
)

var (
	refuseLoading = &catalog.Error{Code: catalog.CodeUnavailable, Message: "the service is loading its configuration"}
	refuseStale   = &catalog.Error{Code: catalog.CodeUnavailable,
		Message: "this node has not heard the authority of its cluster for too long"}
)

// A readiness says whether the node knows enough to answer. The health checks do not ask it.
type readiness struct{ loading, stale atomic.Bool }

// refusal returns why calls are answered 503, nil if they are not.
func (r *readiness) refusal() *catalog.Error {
	switch {
	case r.loading.Load():
		return refuseLoading
	case r.stale.Load():
		return refuseStale
	}
	return nil
}

// SetLoading makes every call except the health checks answer 503 while the first load runs: keys and domains that are
// not loaded yet must not look unknown. A new Server is not loading.
func (s *Server) SetLoading(on bool) { s.ready.loading.Store(on) }

// SetStale makes the same calls answer 503 while an edge has not heard its authority for too long.
func (s *Server) SetStale(on bool) { s.ready.stale.Store(on) }
