package api

import (
	"errors"
	"strings"
	"time"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"fingerpost/api/console"
	"fingerpost/api/web"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// A route is one call of the API. A request is checked in the order of api/README.md, Errors: key, ids of the path and
// query, permission. Then run does the work.
type route struct {
	method  string
	path    string // parameters in braces; those whose name ends in "id" are numbers
	service Services
	allow   catalog.Permission // one of these is needed; 0: no key is needed
	run     func(*web.Request) error
}

// routes lists every call. A GET route also serves HEAD, and every path answers OPTIONS.
func (s *Server) routes() []route {
	const read, write, mail = catalog.MayRead, catalog.MayWrite, catalog.MayMail
	on := func(param string, run func(*web.Request, *catalog.Project) error) func(*web.Request) error {
		return web.OnProject(s.projects, param, run)
	}
	onDomain := func(run func(*web.Request, *catalog.Project, *catalog.Domain) error) func(*web.Request) error {
		return web.OnPart(s.projects, "domainId", s.projects.Domain, run)
	}
	onTemplate := func(run func(*web.Request, *catalog.Project, *catalog.Template) error) func(*web.Request) error {
		return web.OnPart(s.projects, "templateId", s.projects.Template, run)
	}
	return []route{
		{"GET", platformHealthPath, Platform, 0, s.platformHealth},
		{"GET", openAPIPath, Platform, 0, s.describe},
		{"GET", "/api/platform/projects", Platform, read, s.listProjects},
		{"GET", "/api/platform/projects/{id}", Platform, read, s.getProject},
		{"GET", blockPath, Platform, read, on("id", s.getBlock)},
		{"GET", "/api/platform/projects/by-slug/{slug}", Platform, read, s.getProjectBySlug},
		{"GET", resolvePath, Platform, resolvePermissions, nil}, // handle takes it before it asks the router
		{"POST", resolvePath, Platform, resolvePermissions, s.resolveBatch},
		{"GET", "/api/platform/projects/{id}/domains", Platform, read, s.listDomains},
		{"GET", "/api/platform/projects/{projectId}/domains/{domainId}", Platform, read, onDomain(s.getDomain)},
		{"GET", "/api/platform/domains", Platform, read, s.listAllDomains},
		{"GET", "/api/platform/projects/{id}/service-settings", Platform, read, on("id", s.getServiceSettings)},
		{"GET", "/api/platform/projects/{id}/auth-settings", Platform, read, on("id", s.getAuthSettings)},
		{"POST", "/api/platform/projects", Platform, write, s.createProject},
		{"PUT", "/api/platform/projects/{id}", Platform, write, on("id", s.updateProject)},
		{"DELETE", "/api/platform/projects/{id}", Platform, write, on("id", s.deleteProject)},
		{"POST", "/api/platform/projects/{id}/domains", Platform, write, on("id", s.createDomain)},
		{"PUT", "/api/platform/projects/{projectId}/domains/{domainId}", Platform, write, onDomain(s.updateDomain)},
		{"DELETE", "/api/platform/projects/{projectId}/domains/{domainId}", Platform, write, onDomain(s.deleteDomain)},
		{"PUT", "/api/platform/projects/{id}/service-settings", Platform, write, on("id", s.updateServiceSettings)},
		{"PUT", "/api/platform/projects/{id}/auth-settings", Platform, write, on("id", s.updateAuthSettings)},
		{"GET", keysPath, Platform, write, s.listKeys},
		{"POST", keysPath, Platform, write, s.createKey},
		{"POST", rotateKeyPath, Platform, write, s.rotateKey},
		{"DELETE", keyPath, Platform, write, s.revokeKey},
		{"GET", auditPath, Platform, read, s.listAudit},
		{"GET", edgesPath, Platform, read, s.listEdges},
		{"GET", commitPath, Platform, read, s.getCommit},
		{"GET", proposalsPath, Platform, read, s.listProposals},
		{"POST", applyPath, Platform, write, s.applyProposal},
		{"DELETE", proposalPath, Platform, write, s.dropProposal},
		{"POST", gitHookPath, Platform, 0, s.gitHook},
		{"GET", eventsPath, Platform, resolvePermissions, s.streamEvents},
		{"GET", authMePath, Platform, 0, s.authMe},
		{"GET", checkPath, Platform, resolvePermissions, s.gateCheck},
		{"GET", askPath, Platform, resolvePermissions, s.gateAsk},
		{"GET", mailHealthPath, Mail, 0, s.mailHealth},
		{"GET", smtpConfigPath, Mail, read, on("projectId", s.getSMTPConfig)},
		{"POST", smtpConfigPath, Mail, write, on("projectId", s.saveSMTPConfig)},
		{"PUT", smtpConfigPath, Mail, write, on("projectId", s.saveSMTPConfig)},
		{"DELETE", smtpConfigPath, Mail, write, on("projectId", s.deleteSMTPConfig)},
		{"GET", templatesPath, Mail, read, s.listTemplates},
		{"POST", templatesPath, Mail, write, on("projectId", s.saveTemplate)},
		{"PUT", templatesPath, Mail, write, on("projectId", s.saveTemplate)},
		{"GET", templatePath, Mail, read, onTemplate(s.getTemplate)},
		{"DELETE", templatePath, Mail, write, onTemplate(s.deleteTemplate)},
		{"POST", "/api/mail/send/template", Mail, mail, s.sendTemplate},
		{"POST", "/api/mail/send/raw", Mail, mail, s.sendRaw},
		{"POST", "/api/mail/send/test-template", Mail, mail, s.sendTestTemplate},
		{"POST", "/api/mail/projects/smtp-config/test", Mail, mail, s.testSMTP},
		{"POST", "/api/mail/projects/{projectId}/templates/preview", Mail, read, on("projectId", s.previewTemplate)},
		{"GET", mailLogsPath, Mail, read, s.listMailLogs},
		{"GET", mailLogPath, Mail, read, s.getMailLog},
	}
}

// newRouter makes the router. The library's redirects are off: it would build them from the client's Host header.
func (s *Server) newRouter() *router.Router {
	r := router.New()
	r.RedirectTrailingSlash = false
	r.RedirectFixedPath = false
	r.HandleOPTIONS = false
	r.NotFound = s.notFound
	r.MethodNotAllowed = s.methodNotAllowed
	table := s.routes()
	s.statics = map[string]string{}
	options := map[string]bool{}
	for i := range table {
		rt := &table[i]
		r.Handle(rt.method, rt.path, s.handler(rt))
		if rt.method == fasthttp.MethodGet {
			r.Handle(fasthttp.MethodHead, rt.path, s.handler(rt))
		}
		if !options[rt.path] {
			options[rt.path] = true
			if !strings.Contains(rt.path, "{") {
				s.statics[rt.path] = allowed(table, rt.path)
			}
			r.OPTIONS(rt.path, s.optionsHandler(rt, allowed(table, rt.path)))
		}
	}
	return r
}

// notFound answers an unknown path. At the address alone it tells what the listener has.
func (s *Server) notFound(ctx *fasthttp.RequestCtx) {
	c, here := connOf(ctx), []string{}
	if s.hasConsole(c) {
		here = append(here, "the console is at "+console.Prefix)
	}
	if c.services&Platform != 0 {
		here = append(here, "the description of the API is at "+openAPIPath)
	}
	if len(here) == 0 || string(ctx.URI().PathOriginal()) != "/" {
		s.finish(ctx, "", nil, web.RefusePath)
		return
	}
	s.finish(ctx, "", nil, &catalog.Error{Code: web.RefusePath.Code,
		Message: "nothing is at this path: " + strings.Join(here, ", and ")})
}

// methodNotAllowed answers a path that exists only with other methods. The library calls it for the targets "*" and
// "/*" too, and does not know which services the listener offers.
func (s *Server) methodNotAllowed(ctx *fasthttp.RequestCtx) {
	path, service := string(ctx.URI().PathOriginal()), Platform
	if web.IsMailPath(path) {
		service = Mail
	}
	if path == "*" || path == "/*" || connOf(ctx).services&service == 0 {
		ctx.Response.Header.Del("Allow")
		s.finish(ctx, "", nil, web.RefusePath)
		return
	}
	// for a static path the library also counts routes whose parameter would match it
	if allow, static := s.statics[path]; static {
		ctx.Response.Header.Set("Allow", allow)
	}
	s.finish(ctx, "", nil, refuseMethod)
}

// allowed returns the Allow header of a path.
func allowed(table []route, path string) string {
	methods := []string{}
	for _, rt := range table {
		if rt.path != path {
			continue
		}
		if methods = append(methods, rt.method); rt.method == fasthttp.MethodGet {
			methods = append(methods, fasthttp.MethodHead)
		}
	}
	return strings.Join(append(methods, fasthttp.MethodOptions), ", ")
}

// handle serves every request that was read completely.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	c, now := connOf(ctx), ctx.Time()
	if c.asked.answer != nil {
		now = c.asked.at
	}
	var id [web.MaxRequestID]byte
	ctx.Response.Header.SetCanonical(web.HeaderRequestID, s.ids.Append(id[:0],
		ctx.Request.Header.PeekCanonical(web.HeaderRequestID), &c.ids))
	defer func() {
		if cause := recover(); cause != nil {
			s.panicked(ctx, cause)
		}
		c.asked = asked{}
		c.charge.Release()
		// A gateway may pass on the Content-Length of its client without the body. What follows is then its next request.
		if !c.SettleBody(ctx.Response.StatusCode() < 400 && c.services != Gateway) {
			ctx.Response.SetConnectionClose()
			c.Linger() // the rest of the body is not read
		}
		if s.gate.Stopping() { // the library learns it a moment later
			ctx.Response.SetConnectionClose()
		}
	}()
	switch path := ctx.URI().PathOriginal(); {
	case s.toConsole(c, path): // before what follows: it tells people why they have to wait
		s.answerConsole(ctx, c)
	case s.opensConsole(ctx, c, path):
		s.leadToConsole(ctx)
	case s.loading.Load() && string(path) != platformHealthPath && string(path) != mailHealthPath:
		s.finish(ctx, "", nil, refuseLoading)
	case s.stale.Load() && string(path) != platformHealthPath && string(path) != mailHealthPath:
		s.finish(ctx, "", nil, refuseStale)
	case c.services == Gateway:
		s.answerGateway(ctx, c, now)
	case string(path) == resolvePath && (ctx.IsGet() || ctx.IsHead()) && c.services&Platform != 0:
		key, err := s.resolve(ctx, c, now)
		if err != nil {
			answerError(ctx, resolvePath, s.shown(ctx, err))
			s.showPosition(ctx, s.resolver.Published())
		}
		s.metrics.observeResolve(ctx, c, time.Since(now))
		if s.o.AccessLogResolve {
			s.logAccess(ctx, methodLabel(ctx.Method()), resolvePath, key, time.Since(now))
		}
	default:
		s.router.Handler(ctx)
	}
}

// handler wraps a route in the steps that all routes have in common.
func (s *Server) handler(rt *route) fasthttp.RequestHandler {
	vary := web.VaryPlatform
	if rt.service == Mail {
		vary = web.VaryMail
	}
	return func(ctx *fasthttp.RequestCtx) {
		c := connOf(ctx)
		r := &web.Request{Ctx: ctx, Conn: c.Conn, Charge: &c.charge, Path: rt.path, Allow: rt.allow}
		if c.services&rt.service == 0 {
			s.finish(ctx, "", nil, web.RefusePath)
			return
		}
		if path := string(ctx.URI().PathOriginal()); path != rt.path && s.statics[path] != "" {
			s.methodNotAllowed(ctx) // "resolve" is no id: the path has other methods
			return
		}
		var err error
		if rt.allow != 0 {
			// The answer is only for this key. Handlers whose answers may be cached override Cache-Control.
			ctx.Response.Header.SetCanonical(web.HeaderVary, vary)
			ctx.Response.Header.SetCanonical(web.HeaderCacheControl, web.CacheNever)
			r.Key, err = s.authorize(ctx, c, rt.service, ctx.Time())
		}
		if err == nil && rt.allow == catalog.MayWrite {
			if err = r.ReadActor(); err == nil {
				err = r.ReadMessage()
			}
		}
		if err == nil && rt.method != fasthttp.MethodGet {
			err = r.ReadDryRun()
		}
		if err == nil && rt.allow != 0 && rt.method != fasthttp.MethodOptions {
			err = readPropose(r, rt)
		}
		if err == nil && rt.service == Platform && rt.allow != 0 {
			err = s.awaitPosition(ctx)
		}
		shows := rt.service == Platform && !forGateway(ctx, rt.path)
		if shows {
			s.showPosition(ctx, s.resolver.Published())
		}
		passed := false // it is the authority's answer, with the authority's position: this node may not be there yet
		switch {
		case err != nil:
		case s.o.Forwarder != nil && (rt.forwarded() || r.Propose != ""): // an edge has no branches
			err = s.forward(r)
			passed = err == nil
		case r.Propose != "":
			err = s.inProposal(rt, r)
		default:
			err = rt.run(r)
		}
		if dry, is := errors.AsType[*web.DryRun](err); is {
			err = s.succeedDry(r, dry)
		} else if offered, is := errors.AsType[*proposed](err); is {
			err = s.succeedProposed(r, offered)
		}
		if shows && rt.method != fasthttp.MethodGet && !passed {
			s.showPosition(ctx, s.resolver.Published()) // with what the request has changed
		}
		s.finish(ctx, rt.path, r.Key, err)
	}
}

// answerError answers with an error, in the form that belongs to the path.
func answerError(ctx *fasthttp.RequestCtx, path string, e *catalog.Error) {
	if forGateway(ctx, path) {
		failGateway(ctx, web.StatusOf(e.Code), e)
		return
	}
	web.Fail(ctx, path, web.StatusOf(e.Code), e, nil)
}

// optionsHandler answers OPTIONS for a path: it checks the key and lists the methods.
func (s *Server) optionsHandler(of *route, allow string) fasthttp.RequestHandler {
	rt := &route{method: fasthttp.MethodOptions, path: of.path, service: of.service, allow: ^catalog.Permission(0)}
	rt.run = func(r *web.Request) error {
		r.Ctx.Response.Header.Set("Allow", allow)
		r.Ctx.Response.SetStatusCode(fasthttp.StatusNoContent)
		r.Ctx.Response.Header.SetNoDefaultContentType(true)
		return nil
	}
	return s.handler(rt)
}

// finish answers with err, if there is one, and records the request. pattern is the route's path, "" if no route
// matched.
func (s *Server) finish(ctx *fasthttp.RequestCtx, pattern string, key *resolver.Key, err error) {
	if err != nil {
		answerError(ctx, string(ctx.URI().PathOriginal()), s.shown(ctx, err))
	}
	method, took := methodLabel(ctx.Method()), time.Since(ctx.Time())
	s.metrics.observe(pattern, method, ctx.Response.StatusCode(), took)
	// A stream is logged when it ends. Gateways ask at every request of their clients, so they are logged like resolve.
	if !ctx.Hijacked() && (s.o.AccessLogResolve || !forGateway(ctx, pattern)) {
		s.logAccess(ctx, method, pattern, key, took)
	}
}
