package api

import (
	"errors"

	"github.com/valyala/fasthttp"

	"fingerpost/api/gateway"
	"fingerpost/api/platform"
	"fingerpost/api/web"
	"fingerpost/resolver/catalog"
)

// A call is a request at work on a route.
type call struct {
	web.Request
	s    *Server
	conn *conn
	rt   *route
	// shows: the answer says at which position it was made. passed: it is the authority's answer, with the authority's
	// position, at which this node may not be yet.
	shows, passed bool
}

// A step is what some routes do before their own work. An error is the answer.
type step struct {
	of func(*route) bool
	do func(*call) error
}

// steps are done in this order.
var steps = []step{
	{of: (*route).admits, do: (*call).admit},
	{of: (*route).wantsKey, do: (*call).checkKey},
	{of: (*route).writes, do: (*call).readAuthor},
	{of: (*route).mayChange, do: (*call).readDryRun},
	{of: (*route).mayPropose, do: (*call).readPropose},
	{of: (*route).wantsKey, do: (*call).narrowKey},
	{of: (*route).hasPosition, do: (*call).awaitPosition},
}

func (rt *route) admits() bool      { return rt.Admit != nil }
func (rt *route) wantsKey() bool    { return rt.Allow != 0 }
func (rt *route) writes() bool      { return rt.Allow == catalog.MayWrite }
func (rt *route) mayChange() bool   { return rt.Method != fasthttp.MethodGet }
func (rt *route) mayPropose() bool  { return rt.wantsKey() && rt.Method != fasthttp.MethodOptions }
func (rt *route) hasPosition() bool { return rt.wantsKey() && rt.service == Platform }

// handler answers the requests of a route: its steps, its work, and the answer.
func (s *Server) handler(rt *route) fasthttp.RequestHandler {
	var before []step
	for _, st := range steps {
		if st.of(rt) {
			before = append(before, st)
		}
	}
	return func(ctx *fasthttp.RequestCtx) {
		conn := connOf(ctx)
		if conn.services&rt.service == 0 {
			s.finish(ctx, "", nil, web.RefusePath)
			return
		}
		if path := string(ctx.URI().PathOriginal()); path != rt.Path && s.router.statics[path] != "" {
			s.methodNotAllowed(ctx) // "resolve" is no id: the path has other methods
			return
		}
		c := &call{s: s, conn: conn, rt: rt, shows: rt.service == Platform && !forGateway(ctx, rt.Path),
			Request: web.Request{Ctx: ctx, Conn: conn.Conn, Charge: &conn.charge, Path: rt.Path, Allow: rt.Allow,
				Door: conn.doorOf(ctx)}}
		var err error
		for i := 0; i < len(before) && err == nil; i++ {
			err = before[i].do(c)
		}
		c.showPosition()
		if err == nil {
			err = c.outcome(c.work())
		}
		if c.mayHaveChanged() {
			c.showPosition()
		}
		s.finish(ctx, rt.Path, c.Key, err)
	}
}

// admit asks the route whether the caller may call it.
func (c *call) admit() error {
	err := c.rt.Admit(&c.Request)
	if err == nil {
		c.s.gate.Welcome(c.conn.Conn)
	}
	return err
}

// checkKey finds the request's key. The answer is only for this key; handlers whose answers may be cached override
// Cache-Control.
func (c *call) checkKey() (err error) {
	vary := web.VaryPlatform
	if c.rt.service == Mail {
		vary = web.VaryMail
	}
	c.Ctx.Response.Header.SetCanonical(web.HeaderVary, vary)
	c.Ctx.Response.Header.SetCanonical(web.HeaderCacheControl, web.CacheNever)
	if c.Key, err = c.s.authorize(c.Ctx, c.conn, c.rt.service, c.Ctx.Time()); err == nil {
		c.s.beginSpan(c.Ctx, c.conn, c.rt.Path, c.Key)
		c.Span = c.conn.span
	}
	return err
}

// readAuthor reads who makes a change, and what for.
func (c *call) readAuthor() error {
	if err := c.ReadActor(); err != nil {
		return err
	}
	return c.ReadMessage()
}

func (c *call) readDryRun() error  { return c.ReadDryRun() }
func (c *call) readPropose() error { return platform.ReadPropose(&c.Request, &c.rt.Route) }

// narrowKey narrows a person's key to what the request needs, once that is known to be a dry run or a proposal.
func (c *call) narrowKey() error {
	c.Key = c.Key.For(c.Needs())
	return nil
}

func (c *call) awaitPosition() error { return c.s.awaitPosition(c.Ctx) }

// showPosition puts the position of this node into the answer.
func (c *call) showPosition() {
	if c.shows {
		c.s.showPosition(c.Ctx, c.s.resolver.Published())
	}
}

// mayHaveChanged reports whether the position may be another one than before the work.
func (c *call) mayHaveChanged() bool { return c.rt.mayChange() && !c.passed }

// work does what the route is for: here, at the authority, or on the branch of a proposal.
func (c *call) work() error {
	r := &c.Request
	switch {
	case c.s.o.Cluster.Edge != nil && (c.rt.forwarded(r) || r.Propose != ""): // an edge has no branches
		err := c.s.forward(r)
		c.passed = err == nil
		return err
	case r.Propose != "":
		return c.s.rooms.platform.Proposals.Run(r, c.s.rooms.proposed(c.rt, r))
	}
	err := c.rt.Run(r)
	if err == nil && c.rt.Path == gateway.MePath {
		c.s.beginSpan(c.Ctx, c.conn, c.rt.Path, nil) // only now the token is known to be good
	}
	return err
}

// outcome answers a dry run and a proposal, which handlers return as errors.
func (c *call) outcome(err error) error {
	if dry, is := errors.AsType[*web.DryRun](err); is {
		return c.s.succeedDry(&c.Request, dry)
	}
	if offered, is := errors.AsType[*platform.Proposed](err); is {
		return c.s.rooms.platform.Proposals.Answer(&c.Request, offered)
	}
	return err
}
