package api

import (
	"strings"
	"time"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"fingerpost/api/console"
	"fingerpost/api/gate"
	"fingerpost/api/gateway"
	"fingerpost/api/mailapi"
	"fingerpost/api/platform"
	"fingerpost/api/web"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// A route is a web.Route of a service.
type route struct {
	web.Route
	service Services
}

// of returns the routes as those of a service.
func (service Services) of(routes []web.Route) (table []route) {
	for _, rt := range routes {
		table = append(table, route{rt, service})
	}
	return table
}

// routes lists every call. A GET route also serves HEAD, and every path answers OPTIONS.
func (s *Server) routes() []route {
	return append(s.rooms.routes(), Platform.of(append(s.streams.Routes(),
		web.Call("GET", openAPIPath, 0, 0, s.describe),
		web.Call("GET", resolvePath, resolvePermissions, 0, nil), // handle takes it before it asks the router
		web.Call("POST", resolvePath, resolvePermissions, 0, s.resolveBatch),
	))...)
}

// A routing finds the handler of a request.
type routing struct {
	*router.Router
	statics map[string]string       // paths without parameters, with their Allow headers
	docs    fasthttp.RequestHandler // of what is below /docs/; nil: nothing
}

// newRouting makes the routing. The library's redirects are off: it would build them from the client's Host header.
func (s *Server) newRouting() *routing {
	r := &routing{router.New(), map[string]string{}, newDocs(s.o.Docs)}
	r.RedirectTrailingSlash = false
	r.RedirectFixedPath = false
	r.HandleOPTIONS = false
	r.NotFound = s.notFound
	r.MethodNotAllowed = s.methodNotAllowed
	table := s.routes()
	options := map[string]bool{}
	for i := range table {
		rt := &table[i]
		r.Handle(rt.Method, rt.Path, s.handler(rt))
		if rt.Method == fasthttp.MethodGet {
			r.Handle(fasthttp.MethodHead, rt.Path, s.handler(rt))
		}
		if !options[rt.Path] {
			options[rt.Path] = true
			if !strings.Contains(rt.Path, "{") {
				r.statics[rt.Path] = allowed(table, rt.Path)
			}
			r.OPTIONS(rt.Path, s.optionsHandler(rt, allowed(table, rt.Path)))
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
	if s.router.docs != nil {
		here = append(here, "the documents are at "+docsPath)
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
	if allow, static := s.router.statics[path]; static {
		ctx.Response.Header.Set("Allow", allow)
	}
	s.finish(ctx, "", nil, refuseMethod)
}

// allowed returns the Allow header of a path.
func allowed(table []route, path string) string {
	methods := []string{}
	for _, rt := range table {
		if rt.Path != path {
			continue
		}
		if methods = append(methods, rt.Method); rt.Method == fasthttp.MethodGet {
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
		s.endSpan(ctx, c)
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
	switch path, refused := ctx.URI().PathOriginal(), s.ready.refusal(); {
	case s.toConsole(c, path): // before what follows: it tells people why they have to wait
		s.answerConsole(ctx, c)
	case s.opensConsole(ctx, c, path):
		s.leadToConsole(ctx)
	case s.toDocs(c, path): // before what follows, too: people read them to learn why
		s.answerDocs(ctx)
	case toUnsubscribe(c, path): // before what follows, too: people get pages
		s.answerUnsubscribe(ctx)
	case refused != nil && string(path) != platform.HealthPath && string(path) != mailapi.HealthPath:
		s.finish(ctx, "", nil, refused)
	case c.services == Gateway:
		s.answerGateway(ctx, c, now)
	case c.relayed && string(path) == signInPath:
		s.finish(ctx, console.Prefix, nil, s.answerSignIn(ctx, c))
	case string(path) == resolvePath && (ctx.IsGet() || ctx.IsHead()) && c.services&Platform != 0:
		key, err := s.resolve(ctx, c, now)
		if err != nil {
			e := s.shown(ctx, err)
			answerError(ctx, resolvePath, e)
			noteFailure(ctx, e)
			s.showPosition(ctx, s.resolver.Published())
		}
		s.metrics.observeResolve(ctx, c, time.Since(now))
		s.metrics.sample(ctx, resolvePath, time.Since(now))
		if s.o.AccessLogResolve {
			s.access.request(ctx, methodLabel(ctx.Method()), resolvePath, key, time.Since(now))
		}
	default:
		s.router.Handler(ctx)
	}
}

// answerGateway answers a request on a gateway listener.
func (s *Server) answerGateway(ctx *fasthttp.RequestCtx, c *conn, now time.Time) {
	pattern, err := "", error(gateway.RefusePeer)
	if c.outside {
		ctx.Response.SetConnectionClose()
	} else {
		pattern = gateway.Pattern(ctx)
		s.beginSpan(ctx, c, pattern, nil)
		if err = s.rooms.gateway.Answer(ctx, pattern); pattern != "" {
			s.gate.Welcome(c.Conn)
		}
	}
	passed := pattern == gate.CheckPath && err == nil && ctx.IsGet() && ctx.Response.StatusCode() == fasthttp.StatusOK
	if passed && !s.o.AccessLogResolve {
		s.metrics.checked[c.shard].observe(time.Since(now))
		s.metrics.sample(ctx, pattern, time.Since(now))
		return
	}
	s.finish(ctx, pattern, nil, err)
}

// forGateway reports whether a request belongs to a gateway. path is its own or that of its route.
func forGateway(ctx *fasthttp.RequestCtx, path string) bool {
	return connOf(ctx).services == Gateway || gateway.IsPath(path)
}

// answerError answers with an error, in the form that belongs to the path.
func answerError(ctx *fasthttp.RequestCtx, path string, e *catalog.Error) {
	if forGateway(ctx, path) {
		gateway.Fail(ctx, web.StatusOf(e.Code), e)
		return
	}
	web.Fail(ctx, path, web.StatusOf(e.Code), e, nil)
}

// optionsHandler answers OPTIONS for a path: it checks the key and lists the methods.
func (s *Server) optionsHandler(of *route, allow string) fasthttp.RequestHandler {
	rt := &route{web.Route{Method: fasthttp.MethodOptions, Path: of.Path, Allow: ^catalog.Permission(0), Marks: of.Marks},
		of.service}
	rt.Run = func(r *web.Request) error {
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
		e := s.shown(ctx, err)
		answerError(ctx, string(ctx.URI().PathOriginal()), e)
		noteFailure(ctx, e)
	}
	method, took := methodLabel(ctx.Method()), time.Since(ctx.Time())
	s.metrics.observe(pattern, method, ctx.Response.StatusCode(), took)
	s.metrics.sample(ctx, pattern, took)
	// A stream is logged when it ends. Gateways ask at every request of their clients, so they are logged like resolve.
	asked := forGateway(ctx, pattern) || pattern == gateway.MePath && err == nil
	if !ctx.Hijacked() && (s.o.AccessLogResolve || !asked) {
		s.access.request(ctx, method, pattern, key, took)
	}
}
