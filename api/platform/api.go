// Package platform answers the calls of /api/platform: projects, domains, settings, search, the audit trail, commits,
// proposals. Keys are in package keys, the change feed is in package events, and resolve in package api.
// api/openapi.yaml describes all of them to clients.
//
// What it promises. A key sees the projects that it covers, and no more in lists, searches, plans and errors than in
// single reads. A write works on what the file says when it is made, and its preconditions are checked there. A list of
// everything is read while it is sent, so a slow reader holds neither rows nor the store.
//
// A call with X-Propose works on the state of a proposal: the same handlers on another State and another Writer, which
// On gives them. Proposals runs such a call, and lists, applies and drops proposals. What a key may not know of, it is
// told does not exist.
//
// What it needs. Readers of the declared state, of lists and of the audit trail, an Explainer and a History, by
// interfaces that it declares; of the config folder it needs what may be claimed and where values come from. Package web
// reads the requests and writes the answers.
//
// What it does not do. It checks no key, and writes nothing but by a web.Writer.
package platform

import (
	"log/slog"

	"fingerpost/api/web"
	"fingerpost/configsrc/names"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/rowjson"
)

// The paths of calls that the Server treats apart: the health check needs no key and answers while the service loads,
// and an edge adds its own state to the failure of the other.
const (
	HealthPath = "/api/platform/health"
	EdgesPath  = "/api/platform/edges"
)

// A State reads what the files declare: single projects and what belongs to them. *resolver.Resolver and, for the state
// of a proposal, *resolver.Overlay implement it, and Lists.
type State interface {
	names.Declared
	domains
	settings
	ProjectBySlug(slug string) (*catalog.Project, error)
}

type domains interface {
	Domain(projectID, domainID int64) (*catalog.Domain, error)
	Domains(projectID int64, q resolver.Query) ([]*catalog.Domain, int, error)
}

type settings interface {
	ServiceSettings(projectID int64) (*catalog.ServiceSettings, error)
	AuthSettings(projectID int64) (*catalog.AuthSettings, error)
}

// Lists are those of all projects.
type Lists interface {
	rows
	found
	Projects(q resolver.Query) ([]*catalog.Project, int, error)
	Summaries(projects []*catalog.Project) ([]*rowjson.Summary, error)
	EachProject(yield func(*catalog.Project) bool) error
}

type found interface {
	FoundProjects(s resolver.Search, ids []int64) ([]resolver.Found, error)
	FindProjects(s resolver.Search, q resolver.Query) ([]*catalog.Project, int, error)
	FoundDomains(s resolver.Search, ids []int64) ([]resolver.Found, error)
	FindDomains(s resolver.Search, q resolver.Query) ([]*catalog.Domain, int, error)
}

// A Trail is the audit trail; *resolver.Resolver implements it.
type Trail interface {
	Audit(q catalog.AuditQuery) (catalog.AuditPage, error)
}

// An API answers the calls. Safe for concurrent use.
type API struct {
	State     State
	Explainer Explainer // nil: where values come from is answered 503
	Writer    *web.Writer
	Lists     Lists
	Trail     Trail
	History   History // nil: there is no git history
	Published func() *resolver.Published
	Edges     func() ([]byte, error) // what GET /edges lists, as JSON; nil: the node belongs to no cluster
	Hook      Hook
	Proposals *Proposals
	Verifier  Verifier // nil: verification is answered 503
	Logger    *slog.Logger

	proposes bool // it is for the state of a proposal, which ends with the call
}

// On returns an API for the state of a proposal.
func (a *API) On(state *resolver.Overlay, explainer Explainer, writer *web.Writer) *API {
	on := *a
	on.State, on.Lists, on.Explainer, on.Writer, on.proposes = state, state, explainer, writer, true
	return &on
}

// Routes lists every call.
func (a *API) Routes() []web.Route {
	const read, write = catalog.MayRead, catalog.MayWrite
	on := func(run func(*web.Request, *catalog.Project) error) func(*web.Request) error {
		return web.OnProject(a.State, "id", run)
	}
	onDomain := func(run func(*web.Request, *catalog.Project, *catalog.Domain) error) func(*web.Request) error {
		return web.OnPart(a.State, "domainId", a.State.Domain, run)
	}
	return append(a.verificationRoutes(onDomain),
		web.Call("GET", HealthPath, 0, 0, health),
		web.Call("GET", "/api/platform/projects", read, web.Proposable, a.listProjects),
		web.Call("GET", "/api/platform/projects/{id}", read, web.Proposable, a.getProject),
		web.Call("GET", blockPath, read, web.Proposable, on(a.getBlock)),
		web.Call("GET", "/api/platform/projects/by-slug/{slug}", read, web.Proposable, a.getProjectBySlug),
		web.Call("GET", "/api/platform/projects/{id}/domains", read, web.Proposable, a.listDomains),
		web.Call("GET", "/api/platform/projects/{projectId}/domains/{domainId}", read, web.Proposable, onDomain(a.getDomain)),
		web.Call("GET", "/api/platform/projects/{id}/service-settings", read, web.Proposable, on(a.getServiceSettings)),
		web.Call("GET", "/api/platform/projects/{id}/auth-settings", read, web.Proposable, on(a.getAuthSettings)),
		web.Call("POST", "/api/platform/projects", write, 0, a.createProject),
		web.Call("POST", "/api/platform/projects/bulk", write, 0, a.bulk),
		web.Call("PUT", "/api/platform/projects/{id}", write, 0, on(a.updateProject)),
		web.Call("DELETE", "/api/platform/projects/{id}", write, 0, on(a.deleteProject)),
		web.Call("POST", "/api/platform/projects/{id}/domains", write, 0, on(a.createDomain)),
		web.Call("PUT", "/api/platform/projects/{projectId}/domains/{domainId}", write, 0, onDomain(a.updateDomain)),
		web.Call("DELETE", "/api/platform/projects/{projectId}/domains/{domainId}", write, 0, onDomain(a.deleteDomain)),
		web.Call("PUT", "/api/platform/projects/{id}/service-settings", write, 0, on(a.updateServiceSettings)),
		web.Call("PUT", "/api/platform/projects/{id}/auth-settings", write, 0, on(a.updateAuthSettings)),
		web.Call("GET", "/api/platform/audit", read, web.ByAuthority, a.listAudit),
		web.Call("GET", EdgesPath, read, web.ByAuthority, a.listEdges),
		web.Call("GET", commitPath, read, web.ByAuthority, a.getCommit),
		web.Call("GET", proposalsPath, read, web.ByAuthority, a.Proposals.list),
		web.Call("GET", proposalPath, read, web.ByAuthority, a.Proposals.get),
		web.Call("POST", applyPath, write, web.LiveOnly, a.Proposals.apply),
		web.Call("POST", updatePath, write, web.LiveOnly, a.Proposals.update),
		web.Call("POST", approvePath, write, web.LiveOnly, a.Proposals.approve),
		web.Call("DELETE", proposalPath, write, web.LiveOnly, a.Proposals.drop),
		web.Call("POST", gitHookPath, 0, 0, a.gitHook),
	)
}

func health(r *web.Request) error {
	r.Succeed("platform service is up", []byte(`{"service":"platform-service"}`))
	return nil
}
