package api

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/valyala/fasthttp"

	"fingerpost/api/gateway"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// benchProjects is enough for the answers not to fit into the processor's nearer caches.
const benchProjects = 20_000

// A scriptedConn is a peer without a network: it sends the given number of ready requests and drops the answers. It
// allows comparing the cost of the server above the socket with that of the floor.
type scriptedConn struct {
	net.Conn
	requests [][]byte
	left     int
	at       int
	done     func()
}

func (c *scriptedConn) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, io.EOF
	}
	c.left--
	c.at = (c.at + 1) % len(c.requests)
	return copy(p, c.requests[c.at]), nil
}

func (c *scriptedConn) Write(p []byte) (int, error) { return len(p), nil }
func (c *scriptedConn) Close() error                { c.done(); return nil }
func (c *scriptedConn) LocalAddr() net.Addr         { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
func (c *scriptedConn) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2}
}
func (c *scriptedConn) SetDeadline(time.Time) error      { return nil }
func (c *scriptedConn) SetReadDeadline(time.Time) error  { return nil }
func (c *scriptedConn) SetWriteDeadline(time.Time) error { return nil }

type scriptedListener struct {
	conns chan net.Conn
}

func (l scriptedListener) Accept() (net.Conn, error) {
	if c, ok := <-l.conns; ok {
		return c, nil
	}
	return nil, io.EOF
}
func (l scriptedListener) Close() error   { return nil }
func (l scriptedListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// benchRequests asks for random domains. more is what else is in the header.
func benchRequests(key, more string) [][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(r, 1.1, 8, benchProjects-1)
	out := make([][]byte, 1<<16)
	for i := range out {
		out[i] = fmt.Appendf(nil, "GET %s?domain=shop.project-%05d.example HTTP/1.1\r\nHost: localhost:8080\r\nX-PLATFORM-KEY: %s\r\n"+
			"User-Agent: gateway/1.0\r\nAccept: */*\r\n%s\r\n", resolvePath, zipf.Uint64(), key, more)
	}
	return out
}

// runServe sends b.N requests over two connections.
func runServe(b *testing.B, requests [][]byte, serve func(net.Listener) error) {
	const conns = 2
	ln := scriptedListener{make(chan net.Conn, conns)}
	go serve(ln)
	var all sync.WaitGroup
	all.Add(conns)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range conns {
		ln.conns <- &scriptedConn{requests: requests, left: b.N / conns, at: i * len(requests) / conns, done: all.Done}
	}
	all.Wait()
	b.StopTimer()
	close(ln.conns)
}

// BenchmarkServeHit is all that the server does for a hit above the socket, BenchmarkServeHitByHandler the same without
// the fast path, and BenchmarkServeFloor what the library does with the least of a handler.
func BenchmarkServeHit(b *testing.B) {
	s, key := loadedServer(b)
	runServe(b, benchRequests(key, ""), func(ln net.Listener) error { return s.Serve(ln, Platform) })
}

func BenchmarkServeHitByHandler(b *testing.B) {
	s, key := loadedServer(b)
	runServe(b, benchRequests(key, "X-Unusual: yes\r\n"), func(ln net.Listener) error { return s.Serve(ln, Platform) })
}

// BenchmarkServeCheck is a gateway's check with what a browser sends, BenchmarkServeCheckByHandler the same without the
// fast path, and BenchmarkServeCheckToken one with a bearer token, which the handler verifies when it first comes.
func BenchmarkServeCheck(b *testing.B) {
	s, _ := loadedServer(b)
	runServe(b, benchChecks("/check", browserHeader), func(ln net.Listener) error { return s.Serve(ln, Gateway) })
}

// BenchmarkServeCheckPlain has the header of BenchmarkServeHit.
func BenchmarkServeCheckPlain(b *testing.B) {
	s, _ := loadedServer(b)
	runServe(b, benchChecks("/check", "User-Agent: gateway/1.0\r\nAccept: */*\r\n"), func(ln net.Listener) error { return s.Serve(ln, Gateway) })
}

func BenchmarkServeCheckByHandler(b *testing.B) {
	s, _ := loadedServer(b)
	s.o.NoFastPath = true
	runServe(b, benchChecks("/check", browserHeader), func(ln net.Listener) error { return s.Serve(ln, Gateway) })
}

func BenchmarkServeCheckToken(b *testing.B) {
	s, _ := loadedServer(b)
	runServe(b, benchChecks("/check?auth=required", browserHeader+"Authorization: Bearer {token}\r\n"), func(ln net.Listener) error { return s.Serve(ln, Gateway) })
}

// BenchmarkServeAuthMe asks with the same tokens.
func BenchmarkServeAuthMe(b *testing.B) {
	s, _ := loadedServer(b)
	runServe(b, benchChecks("/api/auth/me", browserHeader+"Authorization: Bearer {token}\r\n"), func(ln net.Listener) error { return s.Serve(ln, Platform) })
}

// benchSecret signs the tokens of all projects of loadedServer.
const benchSecret = "0123456789abcdef0123456789abcdef"

// benchChecks asks about random domains, with a token of the domain's project for "{token}".
func benchChecks(path, more string) [][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(r, 1.1, 8, benchProjects-1)
	out := make([][]byte, 1<<14)
	for i := range out {
		n := zipf.Uint64()
		token := benchToken(2*n+1, "u-4711", "ada@example.com")
		out[i] = fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: shop.project-%05d.example\r\n%s\r\n",
			path, n, strings.ReplaceAll(more, "{token}", token))
	}
	return out
}

func benchToken(project uint64, sub, email string) string {
	token, _ := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"iss": gateway.DefaultIssuer, "sub": sub, "email": email,
		"projectId": project, "iat": 1769851800, "exp": 1 << 40}).SignedString([]byte(benchSecret))
	return token
}

func BenchmarkServeFloor(b *testing.B) {
	bodies := make([][]byte, benchProjects)
	for i := range bodies {
		bodies[i] = []byte(strings.Repeat("x", 977))
	}
	const key = "fpk_abcdefgh_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZab"
	h := &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) {
		if !bytes.Equal(ctx.Request.Header.Peek("X-PLATFORM-KEY"), []byte(key)) {
			ctx.SetStatusCode(401)
			return
		}
		n, d := 0, ctx.QueryArgs().Peek("domain")
		for _, c := range d[len("shop.project-"):][:5] {
			n = n*10 + int(c-'0')
		}
		ctx.SetContentType("application/json; charset=utf-8")
		ctx.Response.SetBodyRaw(bodies[n])
	}}
	runServe(b, benchRequests(key, ""), h.Serve)
}

// loadedServer has benchProjects projects, all of whose answers are cached, and a key.
func loadedServer(b *testing.B) (s *Server, key string) {
	b.Helper()
	r, err := resolver.Open(resolver.Options{CacheBytes: 256 << 20, OpenSecret: func(s catalog.Secret, _ string) (string, error) { return s.Ref, nil }})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { r.Close() })
	text, id := catalog.NewKeyText()
	hash, _ := catalog.ParseKeyHash(catalog.HashKeyText(text))
	d := &catalog.Declared{Keys: []catalog.Key{{Name: "k", ID: id, Hash: hash, Allow: catalog.MayResolve}}}
	for i := range benchProjects {
		slug := fmt.Sprintf("project-%05d", i)
		uuid := catalog.DeriveProjectUUID(slug)
		domain := "shop." + slug + ".example"
		d.Projects = append(d.Projects, catalog.ProjectConfig{
			Project: catalog.Project{ID: int64(2*i + 1), UUID: uuid, Name: slug, Slug: slug, Status: catalog.StatusActive},
			Domains: []catalog.Domain{{ID: int64(2*i + 2), UUID: catalog.DeriveDomainUUID(uuid, domain), ProjectID: int64(2*i + 1), Name: domain, Active: true}},
			Service: catalog.NewServiceSettings(), Auth: catalog.NewAuthSettings(),
		})
		d.Projects[i].Auth.Token.JWTSecret = catalog.Secret{Source: catalog.SecretPlain, Ref: benchSecret}
	}
	change := &catalog.Change{Files: []catalog.FileChange{{Path: "a.hcl", Row: &catalog.FileRow{Refs: d.Refs()}, Declared: d}}}
	if _, err := r.Apply(change); err != nil {
		b.Fatal(err)
	}
	s, err = New(Options{Resolver: r, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		b.Fatal(err)
	}
	for i := range benchProjects {
		for _, form := range []resolver.Form{resolver.Nested, resolver.Gateway} {
			if a, err := r.Resolve(fmt.Appendf(nil, "shop.project-%05d.example", i), form); err != nil || a.Code != "" {
				b.Fatal(i, err)
			}
		}
	}
	return s, text
}
