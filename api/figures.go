package api

import (
	"fingerpost/api/events"
	"fingerpost/api/ops"
)

// Connections is the number of open connections.
func (s *Server) Connections() int { return s.gate.Open() }

// EventStreams returns the open streams of the change feed.
func (s *Server) EventStreams() *events.Streams { return s.streams }

// EachAuthFailure yields how often keys and tokens were refused, by reason.
func (s *Server) EachAuthFailure(yield func(reason string, count uint64)) {
	for failure := keyGood + 1; failure < keyFailures; failure++ {
		yield(keyFailureNames[failure], s.keys.failures[failure].Load())
	}
	s.rooms.gateway.EachFailure(yield)
}

// EachRequest yields the durations of requests by route, method and status.
func (s *Server) EachRequest(yield func(ops.Requests)) { s.metrics.each(yield) }
