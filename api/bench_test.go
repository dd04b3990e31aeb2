package api

import (
	"io"
	"log/slog"
	"runtime"
	"testing"

	"github.com/valyala/fasthttp"

	"fingerpost/api/web"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// hotServer has one project, and a context that asks for its domain.
func hotServer(tb testing.TB) (*Server, *fasthttp.RequestCtx) {
	tb.Helper()
	r, err := resolver.Open(resolver.Options{CacheBytes: 16 << 20, OpenSecret: func(s catalog.Secret, _ string) (string, error) { return s.Ref, nil }})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { r.Close() })
	text, id := catalog.NewKeyText()
	hash, _ := catalog.ParseKeyHash(catalog.HashKeyText(text))
	uuid := catalog.DeriveProjectUUID("acme")
	d := &catalog.Declared{
		Projects: []catalog.ProjectConfig{{
			Project: catalog.Project{ID: 1, UUID: uuid, Name: "Acme", Slug: "acme", Status: catalog.StatusActive},
			Domains: []catalog.Domain{{ID: 2, UUID: catalog.DeriveDomainUUID(uuid, "shop.acme.example"), ProjectID: 1, Name: "shop.acme.example", Active: true}},
			Service: catalog.NewServiceSettings(), Auth: catalog.NewAuthSettings(),
		}},
		Keys: []catalog.Key{{Name: "k", ID: id, Hash: hash, Allow: catalog.MayResolve, Projects: []string{"acme"}}},
	}
	d.Projects[0].Auth.Token.JWTSecret = catalog.Secret{Source: catalog.SecretPlain, Ref: benchSecret}
	change := &catalog.Change{Files: []catalog.FileChange{{Path: "a.hcl", Row: &catalog.FileRow{Refs: d.Refs()}, Declared: d}}}
	if _, err := r.Apply(change); err != nil {
		tb.Fatal(err)
	}
	s, err := New(Options{Resolver: r, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		tb.Fatal(err)
	}
	ctx := &fasthttp.RequestCtx{}
	var req fasthttp.Request
	req.Header.SetMethod("GET")
	req.SetRequestURI(resolvePath + "?domain=Shop.Acme.example")
	req.Header.SetHost("localhost:8080")
	req.Header.Set("X-PLATFORM-KEY", text)
	c := s.admit(newRecordedConn([]byte("GET "+resolvePath+" HTTP/1.1\r\nX-PLATFORM-KEY: "+text+"\r\n\r\n")), false)
	if _, err := c.Read(make([]byte, 4096)); err != nil {
		tb.Fatal(err)
	}
	c.Close()
	ctx.Init2(c, nil, false)
	req.CopyTo(&ctx.Request)
	// The answer gets into the cache a moment after it was built.
	for s.serveOnce(ctx); r.Metrics().Hits == 0; s.serveOnce(ctx) {
		runtime.Gosched()
	}
	if got := ctx.Response.StatusCode(); got != 200 {
		tb.Fatalf("status %d: %s", got, ctx.Response.Body())
	}
	return s, ctx
}

// serveOnce does what the HTTP library does around a handler.
func (s *Server) serveOnce(ctx *fasthttp.RequestCtx) {
	ctx.Response.Reset()
	s.handle(ctx)
}

func BenchmarkResolveHit(b *testing.B) {
	s, ctx := hotServer(b)
	b.ReportAllocs()
	for b.Loop() {
		s.serveOnce(ctx)
	}
}

func BenchmarkResolveNotModified(b *testing.B) {
	s, ctx := hotServer(b)
	ctx.Request.Header.Set("If-None-Match", string(ctx.Response.Header.PeekCanonical(web.HeaderETag)))
	b.ReportAllocs()
	for b.Loop() {
		s.serveOnce(ctx)
	}
}

func BenchmarkKeyCheck(b *testing.B) {
	s, ctx := hotServer(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.authorize(ctx, connOf(ctx), Platform, ctx.Time()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFloor is a handler that reads the key and the argument and writes a ready body.
func BenchmarkFloor(b *testing.B) {
	_, ctx := hotServer(b)
	body := append([]byte(nil), ctx.Response.Body()...)
	b.ReportAllocs()
	for b.Loop() {
		ctx.Response.Reset()
		if len(ctx.Request.Header.Peek("X-PLATFORM-KEY")) == 0 || len(ctx.QueryArgs().Peek("domain")) == 0 {
			b.Fatal("no key")
		}
		ctx.Response.Header.SetContentType("application/json; charset=utf-8")
		ctx.Response.SetBody(body)
	}
}
