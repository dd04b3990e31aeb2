package api

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"fingerpost/api/console"
	"fingerpost/api/events"
	"fingerpost/api/gate"
	"fingerpost/api/gateway"
	"fingerpost/api/mailapi"
	"fingerpost/api/platform"
	"fingerpost/api/platform/webhooks"
	"fingerpost/api/web"
	"fingerpost/configsrc/proposals"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/trace"
)

// Services are the APIs that a listener offers, as a set of bits.
type Services uint8

// The two services, the platform API and the mail API (api/README.md), what gateways ask without a key, and the web
// console. Gateway stands alone.
const (
	Platform Services = 1 << iota
	Mail
	Gateway
	Console
)

// Options say what a Server serves and how. Only Resolver is required.
type Options struct {
	Resolver *resolver.Resolver
	Config   Config
	// Mail takes the mail API's sends and tests. Nil: they are answered 503.
	Mail mailapi.Mailer
	// Senders checks what receivers find of senders. Nil: that is answered 503.
	Senders mailapi.SenderChecker
	// Logger takes the access log, panics and faults. Nil: slog.Default().
	Logger *slog.Logger
	// TLS is used on TCP listeners; a Unix socket and a gateway listener stay in clear text. Nil: none. See TLSConfig.
	TLS *tls.Config
	// ResolveMaxAge is how long clients may cache an answer of resolve, in whole seconds. 0: 5 s; negative: not at all.
	ResolveMaxAge time.Duration
	// AccessLogResolve puts into the access log what is asked at every request of others, too: resolve, the gate, and
	// tokens that are good.
	AccessLogResolve bool
	// NoFastPath leaves plain resolve requests to the HTTP library and the handler, which answer the same bytes.
	NoFastPath bool
	// BlockedKeyIDs are public ids of keys that are refused even if the files declare them.
	BlockedKeyIDs map[string]bool
	// Gateway are the rules for gateways.
	Gateway gateway.Options
	// Cluster is the node's part in a cluster. The zero Cluster belongs to none.
	Cluster Cluster
	// Console makes the web console, which is served where a listener offers it. Only what the Server does not know itself
	// is read. Nil: there is none.
	Console *console.Options
	// Trace takes the spans of requests that clients have sampled. Nil: nothing is traced.
	Trace *trace.Exporter
	// Docs answers what is below /docs/, also while the node is loading. Nil: the path is unknown.
	Docs http.Handler
	// Limits bound what peers can use. Zero fields take their defaults.
	Limits Limits
}

// Config is the config folder, as the API reads and changes it. The zero Config is one that nobody changes.
type Config struct {
	// Files takes the platform API's writes. Nil: writes are answered 409 CONFIG_READ_ONLY.
	Files web.Files
	// Explainer tells where values come from. Nil: view=full is answered 503.
	Explainer platform.Explainer
	// Plan makes the plan of a dry run. Nil: the answer has none.
	Plan platform.Planner
	// Git tells the commits of writes. Nil: nothing is committed.
	Git Git
	// Proposals takes the writes that are proposed. Nil: they are answered 409 GIT_NOT_ENABLED.
	Proposals *proposals.Set
	// Verifier knows the verification of the domains that the files declare. Nil: it is answered 503.
	Verifier platform.Verifier
	// WebhookEngine delivers events to webhooks. Nil: calls about deliveries are answered 503.
	WebhookEngine webhooks.Engine
	// KeySets are those that projects name; nil: none is kept.
	KeySets gateway.KeySets
	// WebhookAllow says to which addresses a webhook may have http; nil: to any.
	WebhookAllow *catalog.HTTPAllow
	// ReadOnly says that this node changes nothing. Recipients' links and providers are answered 503.
	ReadOnly bool
	// PublicURL is where recipients of mail find the service. "": no template can be given a category.
	PublicURL string
	// Inbound takes what providers tell of mails. Nil: that is answered 503.
	Inbound mailapi.Desk
	// Hook fetches from the git repository's remote when that has changed.
	Hook platform.Hook
}

// Cluster is the node's part in a cluster.
type Cluster struct {
	// Edge makes the Server that of an edge: the authority takes its writes and sends, and the reads that only the
	// authority can answer. Nil: this node answers everything.
	Edge Edge
	// Edges returns what GET /edges lists, as JSON. Nil: the node belongs to no cluster.
	Edges func() ([]byte, error)
}

// Limits bound what peers can use of the server.
type Limits struct {
	HeaderBytes   int           // request line and header; 0: 16 KiB
	BodyBytes     int           // of one request; 0: 1 MiB
	Bodies        int64         // bytes of all request bodies in memory; beyond it a request is answered 503; 0: 64 MiB
	BodiesPerKey  int64         // the same for the requests of one key; 0: a quarter of Bodies
	Read          time.Duration // from the first byte of a request to its last; 0: 10 s
	Write         time.Duration // of an answer; a long one gets more time while the client reads it (16 KiB/s); 0: 10 s
	Idle          time.Duration // between two requests; 0: 60 s
	Conns         int           // in total, below the descriptor limit; an eighth is kept for known peers; 0: 8192
	ConnsPerPeer  int           // per IPv4 address and per IPv6 /64, not for Unix sockets; 0: 1024
	Streams       int           // connections that event streams may take; 0: half of Conns
	StreamsPerKey int           // the same for one key; 0: a quarter of Streams
	Heartbeat     time.Duration // between two comments in an event stream; 0: 15 s
	// requests that may wait for an SMTP server; beyond it mails are queued without a wait; 0: half of Conns
	Sends int
}

func (l Limits) withDefaults() Limits {
	l.HeaderBytes = cmp.Or(l.HeaderBytes, 16<<10)
	l.BodyBytes = cmp.Or(l.BodyBytes, 1<<20)
	l.Bodies = cmp.Or(l.Bodies, 64<<20)
	l.BodiesPerKey = cmp.Or(l.BodiesPerKey, max(l.Bodies/4, int64(l.BodyBytes)))
	l.Read = cmp.Or(l.Read, 10*time.Second)
	l.Write = cmp.Or(l.Write, 10*time.Second)
	l.Idle = cmp.Or(l.Idle, time.Minute)
	l.Conns = cmp.Or(l.Conns, 8192)
	l.ConnsPerPeer = cmp.Or(l.ConnsPerPeer, 1024)
	l.Streams = cmp.Or(l.Streams, max(1, l.Conns/2))
	l.StreamsPerKey = cmp.Or(l.StreamsPerKey, max(1, l.Streams/4))
	l.Heartbeat = cmp.Or(l.Heartbeat, 15*time.Second)
	l.Sends = cmp.Or(l.Sends, max(1, l.Conns/2))
	return l
}

// A Git knows the git history, and what has become of a write in it; *gitrepo.Repo is behind it.
type Git interface {
	web.Git
	platform.History
}

// A Server serves the platform and mail APIs on any number of listeners. Safe for concurrent use.
type Server struct {
	o        Options // with their defaults
	resolver *resolver.Resolver

	http         *fasthttp.Server
	router       *routing
	rooms        *rooms
	keys         *keyring
	ids          *web.RequestIDs
	metrics      *metrics
	gate         *gate.Gate
	streams      *events.Streams
	bodies       *web.BodyBudget
	access       *accessLog
	ready        readiness
	cacheControl []byte
	console      *consoleMount // nil: none
}

// New makes a Server. It does not listen yet.
func New(o Options) (*Server, error) {
	if o.Resolver == nil {
		return nil, errors.New("api: Options.Resolver is missing")
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.Limits = o.Limits.withDefaults()
	o.Gateway.Issuer = cmp.Or(o.Gateway.Issuer, gateway.DefaultIssuer)
	s := &Server{
		o: o, resolver: o.Resolver,
		keys: &keyring{keys: o.Resolver.Keys, blocked: o.BlockedKeyIDs, uses: keyUses{ledger: o.Resolver},
			throttle: newThrottle()},
		ids: web.NewRequestIDs(), metrics: newMetrics(),
		access: &accessLog{Logger: o.Logger, anonymous: logLimit{log: o.Logger}},
	}
	s.gate = gate.New(gate.Limits{
		HeaderBytes: s.o.Limits.HeaderBytes, BodyBytes: s.o.Limits.BodyBytes,
		Read: s.o.Limits.Read, Write: s.o.Limits.Write, Idle: s.o.Limits.Idle,
		Conns: s.o.Limits.Conns, ConnsPerPeer: s.o.Limits.ConnsPerPeer,
	})
	maxAge := max(0, int64(cmp.Or(o.ResolveMaxAge, 5*time.Second)/time.Second))
	s.cacheControl = strconv.AppendInt([]byte("private, max-age="), maxAge, 10)
	s.rooms = newRooms(&s.o, s.keys, s.cacheControl)
	s.bodies = web.NewBodyBudget(s.o.Limits.Bodies, s.o.Limits.BodiesPerKey)
	s.streams = events.New(events.Options{
		Live: o.Resolver, Logger: o.Logger,
		Limit: s.o.Limits.Streams, PerKey: s.o.Limits.StreamsPerKey, Heartbeat: s.o.Limits.Heartbeat, Write: s.o.Limits.Write,
	})
	s.router = s.newRouting()
	if o.Console != nil {
		var err error
		if s.console, err = s.newConsole(*o.Console); err != nil {
			return nil, err
		}
	}
	s.http = &fasthttp.Server{
		Handler:        s.handle,
		ErrorHandler:   s.readFailed,
		HeaderReceived: web.HideBody,
		ReadBufferSize: s.o.Limits.HeaderBytes,
		// The gate's cap comes first. Twice as many, because the goroutine of an evicted connection may still run for a
		// moment.
		Concurrency:       2*s.o.Limits.Conns + 1,
		CloseOnShutdown:   true,
		KeepHijackedConns: true, // event streams close their own connections

		NoDefaultServerHeader:        true,
		SecureErrorLogMessage:        true,
		DisablePreParseMultipartForm: true,
		Logger:                       silence{},
	}
	return s, nil
}

// silence drops the HTTP library's log lines, because they quote text of the peer, keys included. readFailed and the
// access log report the same events.
type silence struct{}

func (silence) Printf(string, ...any) {}

// Serve serves the given services on ln, which it owns. It returns nil after Shutdown, and an error if ln fails for
// good. Accepting pauses while a cap is reached or descriptors run out, and resumes by itself.
func (s *Server) Serve(ln net.Listener, services Services) error {
	if services&Console != 0 && s.console != nil {
		s.console.serve.Do(func() { go func() { _ = s.Serve(s.console.pipe, Platform|Mail) }() }) // ends with Shutdown
	}
	options := gate.ListenerOptions{Attach: s.attach(services)}
	if p, is := ln.(*Pipe); is {
		options.Attach = s.attachPipe(p, services)
	}
	if ln.Addr().Network() != "unix" && services != Gateway {
		options.TLS = s.o.TLS
	}
	switch {
	case services&Platform != 0:
		options.Resolver = s
	case services == Gateway:
		options.Resolver, options.Plain = s, gate.PlainCheck
	}
	var logged time.Time
	options.Paused = func(cause error) {
		if now := time.Now(); now.Sub(logged) > time.Minute {
			logged = now
			s.o.Logger.Warn("accepting connections pauses", "addr", ln.Addr().String(), "error", cause)
		}
	}
	l := s.gate.Listener(ln, options)
	if l == nil { // after Shutdown
		return nil
	}
	if err := s.http.Serve(l); err != nil {
		l.Close()
		return fmt.Errorf("serve on %s: %w", ln.Addr(), err)
	}
	return nil
}

// Shutdown stops accepting, closes idle and silent connections, ends event streams and lets running requests finish;
// their answers carry "Connection: close" unless they are being written already. Sends that still wait for their SMTP
// server shortly before ctx's deadline are answered 202. When ctx ends, Shutdown cuts all remaining connections and
// returns ctx's error. A Server cannot be used again after Shutdown.
func (s *Server) Shutdown(ctx context.Context) error {
	s.gate.Close()
	s.gate.Stop()
	s.streams.Stop()
	if s.console != nil {
		s.console.Close()
	}
	defer s.rooms.mail.Waits.EndBefore(ctx)()
	err := s.http.ShutdownWithContext(ctx)
	if err == nil {
		err = s.streams.Wait(ctx)
	}
	s.gate.Cut()
	s.access.anonymous.flush()
	return err
}
