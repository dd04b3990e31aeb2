package api

import (
	"net/http"
	"slices"

	"fingerpost/api/gate"
	"fingerpost/api/gateway"
	"fingerpost/api/ops"
)

// gatewayResults are what an answer to a gateway can be.
var gatewayResults = []string{"passed", "denied", "unauthenticated", "invalid", "failed"}

// gatewayResult returns the index of an answer's result.
func gatewayResult(status int) int {
	switch {
	case status < http.StatusBadRequest:
		return 0
	case status == http.StatusForbidden, status == http.StatusNotFound: // what ?deny= can ask for
		return 1
	case status == http.StatusUnauthorized:
		return 2
	case status < http.StatusInternalServerError:
		return 3
	}
	return 4
}

// EachGatewayAnswer yields how often gateways were answered on all listeners, by result.
func (s *Server) EachGatewayAnswer(yield func(result string, count uint64)) {
	counts := make([]uint64, len(gatewayResults))
	s.metrics.each(func(r ops.Requests) {
		if slices.Contains([]string{gate.CheckPath, gateway.AskPath}, r.Route) || gateway.IsPath(r.Route) {
			counts[gatewayResult(r.Status)] += r.Count
		}
	})
	for i, result := range gatewayResults {
		yield(result, counts[i])
	}
}
