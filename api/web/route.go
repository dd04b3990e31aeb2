package web

import "fingerpost/resolver/catalog"

// A Route is one call of the API. A request is checked in the order of api/README.md, Errors: key, ids of the path and
// query, permission. Then Run does the work.
type Route struct {
	Method string
	Path   string             // parameters in braces; those whose name ends in "id" are numbers
	Allow  catalog.Permission // one of these is needed; 0: no key is needed
	Marks  Marks
	Run    func(*Request) error
	// Admit, if set, decides in the place of a key who may call, before anything else. It sets Request.Payer.
	Admit func(*Request) error
	// ByAuthorityWith are query parameters with which the call is as one that is marked ByAuthority.
	ByAuthorityWith []string
}

// Marks are what is special about a call.
type Marks uint8

const (
	// Proposable marks a read of what the files declare: it can show the state of a proposal.
	Proposable Marks = 1 << iota
	// ByAuthority marks a read that only the authority of a cluster can answer: it has the git history, the mail log, the
	// audit trail, the last use of keys, the heartbeats of edges and the checks of domains.
	ByAuthority
	// LiveOnly marks a write that cannot be proposed.
	LiveOnly
)

// Call makes a Route.
func Call(method, path string, allow catalog.Permission, marks Marks, run func(*Request) error) Route {
	return Route{Method: method, Path: path, Allow: allow, Marks: marks, Run: run}
}
