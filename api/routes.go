package api

import (
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"fingerpost/api/gate"
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
	run     func(*Server, *request) error
}

// routes lists every call. A GET route also serves HEAD, and every path answers OPTIONS.
func routes() []route {
	const read, write, mail = catalog.MayRead, catalog.MayWrite, catalog.MayMail
	return []route{
		{"GET", platformHealthPath, Platform, 0, (*Server).platformHealth},
		{"GET", openAPIPath, Platform, 0, (*Server).describe},
		{"GET", "/api/platform/projects", Platform, read, (*Server).listProjects},
		{"GET", "/api/platform/projects/{id}", Platform, read, (*Server).getProject},
		{"GET", "/api/platform/projects/by-slug/{slug}", Platform, read, (*Server).getProjectBySlug},
		{"GET", resolvePath, Platform, resolvePermissions, nil}, // handle takes it before it asks the router
		{"POST", resolvePath, Platform, resolvePermissions, (*Server).resolveBatch},
		{"GET", "/api/platform/projects/{id}/domains", Platform, read, (*Server).listDomains},
		{"GET", "/api/platform/projects/{projectId}/domains/{domainId}", Platform, read, (*Server).getDomain},
		{"GET", "/api/platform/projects/{id}/service-settings", Platform, read, (*Server).getServiceSettings},
		{"GET", "/api/platform/projects/{id}/auth-settings", Platform, read, (*Server).getAuthSettings},
		{"POST", "/api/platform/projects", Platform, write, (*Server).createProject},
		{"PUT", "/api/platform/projects/{id}", Platform, write, (*Server).updateProject},
		{"DELETE", "/api/platform/projects/{id}", Platform, write, (*Server).deleteProject},
		{"POST", "/api/platform/projects/{id}/domains", Platform, write, (*Server).createDomain},
		{"PUT", "/api/platform/projects/{projectId}/domains/{domainId}", Platform, write, (*Server).updateDomain},
		{"DELETE", "/api/platform/projects/{projectId}/domains/{domainId}", Platform, write, (*Server).deleteDomain},
		{"PUT", "/api/platform/projects/{id}/service-settings", Platform, write, (*Server).updateServiceSettings},
		{"PUT", "/api/platform/projects/{id}/auth-settings", Platform, write, (*Server).updateAuthSettings},
		{"GET", eventsPath, Platform, resolvePermissions, (*Server).streamEvents},
		{"GET", authMePath, Platform, 0, (*Server).authMe},
		{"GET", mailHealthPath, Mail, 0, (*Server).mailHealth},
		{"GET", smtpConfigPath, Mail, read, (*Server).getSMTPConfig},
		{"POST", smtpConfigPath, Mail, write, (*Server).saveSMTPConfig},
		{"PUT", smtpConfigPath, Mail, write, (*Server).saveSMTPConfig},
		{"DELETE", smtpConfigPath, Mail, write, (*Server).deleteSMTPConfig},
		{"GET", templatesPath, Mail, read, (*Server).listTemplates},
		{"POST", templatesPath, Mail, write, (*Server).saveTemplate},
		{"PUT", templatesPath, Mail, write, (*Server).saveTemplate},
		{"GET", templatePath, Mail, read, (*Server).getTemplate},
		{"DELETE", templatePath, Mail, write, (*Server).deleteTemplate},
		{"POST", "/api/mail/send/template", Mail, mail, (*Server).sendTemplate},
		{"POST", "/api/mail/send/raw", Mail, mail, (*Server).sendRaw},
		{"POST", "/api/mail/send/test-template", Mail, mail, (*Server).sendTestTemplate},
		{"POST", "/api/mail/projects/smtp-config/test", Mail, mail, (*Server).testSMTP},
		{"POST", "/api/mail/projects/{projectId}/templates/preview", Mail, read, (*Server).previewTemplate},
		{"GET", "/api/mail/projects/{projectId}/logs", Mail, read, (*Server).listMailLogs},
		{"GET", "/api/mail/projects/{projectId}/logs/{logId}", Mail, read, (*Server).getMailLog},
	}
}

// A request is what a handler works on. It is valid until the handler returns.
type request struct {
	server *Server
	ctx    *fasthttp.RequestCtx
	route  *route
	key    *resolver.Key // nil if the route needs none
}

// permit returns an error if the key does not allow the operation. Handlers call it after checking path and query.
func (r *request) permit() error {
	if r.key.Allow&r.route.allow == 0 {
		return refuseAllow
	}
	return nil
}

// id reads a path parameter that is a positive decimal integer below 2^53 (api/README.md, Requests).
func (r *request) id(name string) (int64, error) {
	text, _ := r.ctx.UserValue(name).(string)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 || n >= 1<<53 || text[0] == '+' {
		return 0, invalidField(name, "must be a positive decimal integer")
	}
	return n, nil
}

// newRouter makes the router. The library's redirects are off: it would build them from the client's Host header.
func (s *Server) newRouter() *router.Router {
	r := router.New()
	r.RedirectTrailingSlash = false
	r.RedirectFixedPath = false
	r.HandleOPTIONS = false
	r.NotFound = func(ctx *fasthttp.RequestCtx) { s.finish(ctx, nil, nil, refusePath) }
	r.MethodNotAllowed = s.methodNotAllowed
	table := routes()
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

// methodNotAllowed answers a path that exists only with other methods. The library calls it for the targets "*" and
// "/*" too, and does not know which services the listener offers.
func (s *Server) methodNotAllowed(ctx *fasthttp.RequestCtx) {
	path, service := string(ctx.URI().PathOriginal()), Platform
	if isMailPath(path) {
		service = Mail
	}
	if c := connOf(ctx); path == "*" || path == "/*" || !offers(c, service) {
		ctx.Response.Header.Del("Allow")
		s.finish(ctx, nil, nil, refusePath)
		return
	}
	if allow, static := s.statics[path]; static { // for a static path the library also counts routes whose parameter would match it
		ctx.Response.Header.Set("Allow", allow)
	}
	s.finish(ctx, nil, nil, refuseMethod)
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
	now := ctx.Time()
	c := connOf(ctx)
	if c != nil && c.scratch.asked.answer != nil {
		now = c.scratch.asked.at
	}
	s.ids.set(&ctx.Response.Header, ctx.Request.Header.PeekCanonical(headerRequestID), c)
	defer s.afterHandler(ctx, c)
	if s.loading.Load() && !isHealth(ctx) {
		s.finish(ctx, nil, nil, refuseLoading)
		return
	}
	if string(ctx.URI().PathOriginal()) == resolvePath && (ctx.IsGet() || ctx.IsHead()) && offers(c, Platform) {
		key := s.resolve(ctx, c, now)
		s.metrics.observeResolve(ctx, c, time.Since(now))
		if s.accessLogResolve {
			s.logAccess(ctx, ctx.Method(), resolvePath, key, time.Since(now))
		}
		return
	}
	s.router.Handler(ctx)
}

// isHealth reports whether a call is also answered before the first load has ended.
func isHealth(ctx *fasthttp.RequestCtx) bool {
	path := string(ctx.URI().PathOriginal())
	return path == platformHealthPath || path == mailHealthPath
}

// offers reports whether the connection's listener offers the service.
func offers(c *conn, service Services) bool { return c == nil || c.services&service != 0 }

// afterHandler turns a panic into a 500, and makes the connection linger on closing if the rest of the body is not
// read.
func (s *Server) afterHandler(ctx *fasthttp.RequestCtx, c *conn) {
	if cause := recover(); cause != nil {
		s.panicked(ctx, cause)
	}
	if c == nil {
		return
	}
	c.scratch.asked = asked{}
	c.ReleaseBody()
	if !c.SettleBody(ctx.Response.StatusCode() < 400) {
		ctx.Response.SetConnectionClose()
		c.Linger()
	}
}

// handler wraps a route in the steps that all routes have in common.
func (s *Server) handler(rt *route) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		r := &request{server: s, ctx: ctx, route: rt}
		c := connOf(ctx)
		if !offers(c, rt.service) {
			s.finish(ctx, nil, nil, refusePath)
			return
		}
		if path := string(ctx.URI().PathOriginal()); path != rt.path && s.statics[path] != "" {
			s.methodNotAllowed(ctx) // "resolve" is no id: the path has other methods
			return
		}
		var err error
		if rt.allow != 0 {
			dependsOnKey(&ctx.Response.Header, rt.service)
			r.key, err = s.authorize(ctx, rt.service)
		}
		if c != nil && r.key != nil {
			c.ChargeBody(s.bodies, r.key.ID)
		}
		if err == nil {
			err = rt.run(s, r)
		}
		s.finish(ctx, rt, r.key, err)
	}
}

// optionsHandler answers OPTIONS for a path: it checks the key and lists the methods.
func (s *Server) optionsHandler(of *route, allow string) fasthttp.RequestHandler {
	rt := &route{method: fasthttp.MethodOptions, path: of.path, service: of.service, allow: ^catalog.Permission(0)}
	rt.run = func(_ *Server, r *request) error {
		r.ctx.Response.Header.Set("Allow", allow)
		r.ctx.Response.SetStatusCode(fasthttp.StatusNoContent)
		r.ctx.Response.Header.SetNoDefaultContentType(true)
		return nil
	}
	return s.handler(rt)
}

// dependsOnKey tells caches that the answer is only for the request's key. Handlers whose answers may be cached
// override it.
func dependsOnKey(h *fasthttp.ResponseHeader, service Services) {
	vary := varyPlatform
	if service == Mail {
		vary = varyMail
	}
	h.SetCanonical(headerVary, vary)
	h.SetCanonical(headerCacheControl, cacheNever)
}

// authorize checks the request's key.
func (s *Server) authorize(ctx *fasthttp.RequestCtx, service Services) (*resolver.Key, error) {
	key, failure := s.keys.check(&ctx.Request.Header, service, ctx.Time())
	if failure != keyGood {
		return nil, s.refuseFailed(ctx, failure)
	}
	if c := connOf(ctx); c != nil {
		s.gate.Welcome(c.Conn)
	}
	return key, nil
}

// finish answers with err, if there is one, and records the request. rt is nil if no route matched.
func (s *Server) finish(ctx *fasthttp.RequestCtx, rt *route, key *resolver.Key, err error) {
	if err != nil {
		s.fail(ctx, string(ctx.URI().PathOriginal()), s.shown(ctx, err))
	}
	pattern := ""
	if rt != nil {
		pattern = rt.path
	}
	if ctx.Hijacked() { // a stream is logged when it ends
		s.metrics.observe(pattern, methodLabel(ctx.Method()), ctx.Response.StatusCode(), time.Since(ctx.Time()))
		return
	}
	s.record(ctx, ctx.Method(), pattern, key, time.Since(ctx.Time()))
}

// isMailPath reports whether errors on the path have the mail service's form.
func isMailPath(path string) bool {
	rest, ok := strings.CutPrefix(path, "/api/mail")
	return ok && (rest == "" || rest[0] == '/')
}

// peerOf returns the peer's address, invalid for a Unix socket.
func peerOf(ctx *fasthttp.RequestCtx) netip.Addr {
	if c := connOf(ctx); c != nil {
		return c.Peer()
	}
	return gate.PeerAddr(ctx.RemoteAddr())
}
