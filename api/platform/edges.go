package platform

import (
	"fingerpost/api/web"
	"fingerpost/resolver/catalog"
)

var (
	refuseNoCluster = &catalog.Error{Code: catalog.CodeNotFound, Message: "this service belongs to no cluster"}
	refuseEdges     = &catalog.Error{Code: catalog.CodeForbidden, Message: "edges are shown to keys for every project"}
)

// listEdges answers GET /edges. The names of edges are no project's, so the key has to read every project.
func (a *API) listEdges(r *web.Request) error {
	if err := r.Permit(); err != nil {
		return err
	}
	switch {
	case !r.Key.EveryProject():
		return refuseEdges
	case a.Edges == nil:
		return refuseNoCluster
	}
	data, err := a.Edges()
	if err != nil {
		return err
	}
	r.Succeed("edges found", data)
	return nil
}
