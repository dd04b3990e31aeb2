package api

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"fingerpost/api/console"
	"fingerpost/api/gate"
	"fingerpost/api/login"
	"fingerpost/api/ops"
	"fingerpost/api/ops/history"
	"fingerpost/api/web"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// A consoleMount is the web console inside the Server. Its requests take the Server's own gate; its pages ask the API
// over a Pipe, with the key of the person who looks at them, like any other client.
type consoleMount struct {
	*console.Console
	pipe  *Pipe
	serve sync.Once // begins to serve the pipe
}

// newConsole makes the console. Calls of the API that it makes wait until the Server serves its Pipe.
func (s *Server) newConsole(o console.Options) (*consoleMount, error) {
	m := &consoleMount{pipe: NewPipe(consolePipe)}
	o.API = &http.Transport{
		DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return m.pipe.Dial(ctx) },
		MaxIdleConnsPerHost: 8, IdleConnTimeout: s.o.Limits.Idle / 2, DisableCompression: true,
	}
	o.Keys, o.Logger, o.Figures, o.Cached = consoleKeys{s}, s.o.Logger, s.ConsoleFigures, s.resolver.Cached
	o.Loading, o.WatchTest = s.ready.loading.Load, s.rooms.mail.Waits.Watch
	o.SignIn.Person = s.personKey
	if s.o.Cluster.Edge == nil { // the authority would not know the key
		o.Guest = s.guestKey
		if v := s.o.Config.Verifier; v != nil {
			o.Customers = customers{s.resolver, v}
		}
	}
	if s.o.Cluster.Edge != nil && o.SignIn.Desk != nil {
		d := &edgeDesk{edge: s.o.Cluster.Edge, logins: s.resolver.Logins, publicURL: o.SignIn.PublicURL, log: s.o.Logger,
			problems: map[string]string{}}
		o.SignIn.Desk, o.SignIn.Person = d, func(p *login.Person) (text string, end func()) {
			endHere := s.resolver.TakePersonKey(personOf(p), p.KeyText)
			return p.KeyText, func() { endHere(); d.end(p.KeyText) }
		}
	}
	o.Git, o.Cluster, o.Edge = s.o.Config.Proposals != nil, s.o.Cluster.Edges != nil, s.o.Cluster.Edge != nil
	var err error
	if m.Console, err = console.New(o); err != nil {
		return nil, err
	}
	return m, nil
}

// answer lets the console answer, and returns who has asked for which page.
func (m *consoleMount) answer(ctx *fasthttp.RequestCtx, secure bool) *console.Visit {
	v := new(console.Visit)
	fasthttpadaptor.NewFastHTTPHandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if secure {
			r.TLS = new(tls.ConnectionState) // for the console it only matters that there is one
		}
		m.Serve(w, r, v)
	})(ctx)
	return v
}

// guestKey makes a key with every permission on every project, which no file declares: who can start the service can
// write such a key into the files.
func (s *Server) guestKey() (text string, end func()) {
	k := &catalog.Key{Name: "console-link", Allow: catalog.MayAll}
	text = k.Renew()
	return text, s.resolver.AddGuestKey(k)
}

// personKey makes the key of a session that a person has begun at a provider.
func (s *Server) personKey(p *login.Person) (text string, end func()) {
	return s.resolver.AddPersonKey(personOf(p))
}

func personOf(p *login.Person) *resolver.Person {
	return &resolver.Person{Login: p.Login, Issuer: p.Issuer, ClientID: p.ClientID, Subject: p.Subject, Claims: p.Claims}
}

// ConsoleLink returns the path of a new link that signs in to the console once, see console.NewLink; "" if there is no
// console, or no such link.
func (s *Server) ConsoleLink() string {
	if s.console == nil {
		return ""
	}
	return s.console.NewLink()
}

// RemoteConsoleLink is ConsoleLink for a browser on another machine.
func (s *Server) RemoteConsoleLink() string {
	if s.console == nil {
		return ""
	}
	return s.console.NewRemoteLink()
}

var consolePath = []byte("/console")

// hasConsole reports whether the connection's listener has the console.
func (s *Server) hasConsole(c *conn) bool { return c.services&Console != 0 && s.console != nil }

// toConsole reports whether a request is the console's.
func (s *Server) toConsole(c *conn, path []byte) bool {
	rest, found := bytes.CutPrefix(path, consolePath)
	return found && s.hasConsole(c) && (len(rest) == 0 || rest[0] == '/')
}

// opensConsole reports whether a request is that of a browser that opens the address alone.
func (s *Server) opensConsole(ctx *fasthttp.RequestCtx, c *conn, path []byte) bool {
	return string(path) == "/" && (ctx.IsGet() || ctx.IsHead()) && s.hasConsole(c) &&
		bytes.Contains(ctx.Request.Header.Peek(fasthttp.HeaderAccept), []byte("text/html"))
}

// leadToConsole answers with a redirect to the console, by its path alone: the Host is the client's word.
func (s *Server) leadToConsole(ctx *fasthttp.RequestCtx) {
	ctx.Response.Header.Set(fasthttp.HeaderLocation, console.Prefix)
	ctx.Response.Header.SetCanonical(web.HeaderVary, []byte(fasthttp.HeaderAccept))
	ctx.Response.Header.SetNoDefaultContentType(true)
	ctx.Response.SetStatusCode(http.StatusFound)
	s.finish(ctx, "/", nil, nil)
}

// answerConsole reads the body, which is small for somebody who is not signed in, and lets the console answer.
func (s *Server) answerConsole(ctx *fasthttp.RequestCtx, c *conn) {
	if c.HasBody() {
		most := int64(s.console.MayPost(string(ctx.Request.Header.Peek("Cookie")), c.Secure()))
		body, err := c.readBody(most, refuseSignInBody)
		if err != nil {
			s.finish(ctx, console.Prefix, nil, err)
			return
		}
		ctx.Request.SetBody(body)
	}
	visit, took := s.console.answer(ctx, c.Secure()), time.Since(ctx.Time())
	method := methodLabel(ctx.Method())
	s.metrics.observe(console.Prefix, method, ctx.Response.StatusCode(), took) // one series for all pages
	s.access.visit(ctx, method, visit, took)
}

// readBody reads the body of a request that no key has sent, or answers with tooLarge.
func (c *conn) readBody(most int64, tooLarge error) ([]byte, error) {
	var read int64
	body, err := c.ReadBody(func(n int64) error {
		if read += n; read > most {
			return tooLarge
		}
		return c.charge.Take("console", n)
	})
	if refused := (*gate.Refusal)(nil); errors.As(err, &refused) {
		return nil, web.RefusedByGate(refused)
	}
	return body, err
}

var refuseSignInBody = &catalog.Error{Code: web.CodeTooLarge,
	Message: "a form of somebody who is not signed in has at most 4 KiB"}

// consoleKeys checks the keys of people.
type consoleKeys struct{ s *Server }

// Check implements console.Keys.
func (k consoleKeys) Check(text string) (console.Key, bool) {
	key, failure := k.s.keys.verify([]byte(text), time.Now())
	if failure != keyGood {
		return console.Key{}, false
	}
	o := console.Key{ID: key.ID, Name: key.Name, Allow: key.Anywhere(), Everything: key.EveryProject(),
		Creates: key.Owner != "" && key.Allow&catalog.MayCreate != 0, ExpiresAt: key.ExpiresAt, Subject: key.Who()}
	if o.Subject != "" {
		o.Reach, o.Everything = key, key.Everywhere()&catalog.MayRead != 0
	}
	return o, true
}

// Fail implements console.Keys.
func (k consoleKeys) Fail(peer netip.Addr) time.Duration {
	k.s.keys.failures[keyUnknown].Add(1)
	return k.s.keys.throttle.fail(peer)
}

// ConsoleFigures are the figures that the console shows.
func (s *Server) ConsoleFigures() console.Figures {
	m := s.resolver.Metrics()
	f := console.Figures{Hits: m.Hits + m.NegativeHits, Misses: m.Misses, CacheBytes: m.CacheBytes,
		CacheLimit:  m.CacheLimit,
		Connections: s.Connections(), Generation: s.resolver.Generation()}
	f.Degraded, _ = s.resolver.Degraded()
	counts := make([]uint64, len(durationBounds))
	s.metrics.each(func(r ops.Requests) {
		if r.Route != resolvePath || r.Method != http.MethodGet {
			return
		}
		f.Resolves += r.Count
		for i, bound := range durationBounds {
			counts[i] += r.Buckets[bound.Seconds()]
		}
	})
	for i, bound := range durationBounds {
		f.Durations = append(f.Durations, history.Bucket{Most: bound, Count: counts[i]})
	}
	return f
}
