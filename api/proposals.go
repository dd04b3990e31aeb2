package api

import (
	"slices"

	"fingerpost/api/web"
	"fingerpost/configsrc"
	"fingerpost/resolver/overlay"
)

// proposed returns the run of a route's call on the state of a proposal: the same handlers on other objects and other
// files.
func (s *Server) proposed(rt *route, r *web.Request) func(*overlay.Objects, *configsrc.Overlay) error {
	return func(objects *overlay.Objects, files *configsrc.Overlay) error {
		writer := &web.Writer{Files: files, Store: s.resolver}
		table := slices.Concat(s.platform.On(objects, files, writer).Routes(), s.mail.On(objects, writer).Routes())
		same := func(own web.Route) bool { return own.Method == rt.Method && own.Path == rt.Path }
		return table[slices.IndexFunc(table, same)].Run(r)
	}
}
