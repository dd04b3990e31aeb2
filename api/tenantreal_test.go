package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"fingerpost/api"
	"fingerpost/api/client/tenant"
	"fingerpost/cmd/testrig"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// A realServer is a server of this house, over files that are declared by the test.
type realServer struct {
	t        testing.TB
	resolver *resolver.Resolver
	url, key string
}

func newRealServer(t testing.TB) *realServer {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	r, err := resolver.Open(resolver.Options{Logger: quiet, CacheBytes: 8 << 20,
		OpenSecret: func(s catalog.Secret, _ string) (string, error) { return s.Ref, nil }})
	if err != nil {
		t.Fatal(err)
	}
	h := &realServer{t: t, resolver: r}
	text, id := catalog.NewKeyText()
	hash, err := catalog.ParseKeyHash(catalog.HashKeyText(text))
	if err != nil {
		t.Fatal(err)
	}
	h.key = text
	h.apply("keys.hcl", &catalog.Declared{Keys: []catalog.Key{{Name: "k", ID: id, Hash: hash, Allow: catalog.MayResolve}}})
	server, err := api.New(api.Options{Resolver: r, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := api.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.url = "http://" + listener.Addr().String()
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener, api.Platform) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		<-served
		r.Close()
	})
	return h
}

func (h *realServer) apply(path string, d *catalog.Declared) {
	h.t.Helper()
	if _, err := h.resolver.Apply(&catalog.Change{Files: []catalog.FileChange{{
		Path: path, Row: &catalog.FileRow{Refs: d.Refs()}, Declared: d, Bytes: []byte(path)}}}); err != nil {
		h.t.Fatal(err)
	}
}

// project declares a project as the whole content of a file of its own; without domains there is none.
func (h *realServer) project(id int64, name, status string, domains ...string) {
	slug := fmt.Sprint("p", id)
	d := &catalog.Declared{}
	if len(domains) > 0 {
		uuid := catalog.DeriveProjectUUID(slug)
		p := catalog.ProjectConfig{Project: catalog.Project{ID: id, UUID: uuid, Name: name, Slug: slug, Status: status,
			Labels: []catalog.Label{{Name: "plan", Value: name}}}, Service: catalog.NewServiceSettings(), Auth: catalog.NewAuthSettings()}
		p.Service.ID, p.Service.UUID = 100_000+id, catalog.DeriveUUID(catalog.KindServiceSettings, uuid)
		p.Auth.ID, p.Auth.UUID = 200_000+id, catalog.DeriveUUID(catalog.KindAuthSettings, uuid)
		for i, name := range domains {
			p.Domains = append(p.Domains, catalog.Domain{ID: 1_000_000 + 100*id + int64(i), UUID: catalog.DeriveDomainUUID(uuid, name),
				ProjectID: id, Name: name, Active: true})
		}
		d.Projects = []catalog.ProjectConfig{p}
	}
	h.apply(slug+".hcl", d)
}

func (h *realServer) open(change func(*tenant.Options)) *tenant.Cache {
	h.t.Helper()
	o := tenant.Options{URL: h.url, Key: h.key, Logger: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&o)
	}
	cache, err := tenant.Open(o)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { cache.Close() })
	if err := cache.Ready(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	return cache
}

// asks returns what the server answers about a host: the project's name, or a code.
func (h *realServer) asks(host string) string {
	h.t.Helper()
	req, err := http.NewRequest("GET", h.url+"/api/platform/projects/resolve?labels=1&domain="+host, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("X-Platform-Key", h.key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	var body struct {
		Data  struct{ Project struct{ Name string } }
		Error struct{ Code string }
	}
	if err := json.NewDecoder(res.Body).Decode(&body); err != nil {
		h.t.Fatal(err)
	}
	return body.Data.Project.Name + map[string]string{"": "", "NOT_FOUND": "unknown", "PROJECT_SUSPENDED": "suspended"}[body.Error.Code]
}

// A seen is an answer that a lookup gave after the cache had seen all events of a generation.
type seen struct {
	host, answer string
	generation   uint64
}

// A history is what the server answered after each change.
type history []struct {
	generation uint64
	answers    map[string]string
}

// fits reports whether an answer was the server's at its generation or after it.
func (s history) fits(a seen) bool {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i].answers[a.host] == a.answer {
			return true
		}
		if s[i].generation <= a.generation {
			return false
		}
	}
	return false
}

// asker looks hosts up until done is closed, and returns the answers. A change may have several events, and Status has
// its position after the first of them: all that is certain is that those of the generation before have been seen.
func asker(t *testing.T, cache *tenant.Cache, hosts []string, done <-chan struct{}) map[seen]bool {
	answers := map[seen]bool{}
	for {
		select {
		case <-done:
			return answers
		default:
		}
		at, err := catalog.ParsePosition(cache.Status().Position)
		if err != nil {
			t.Error(err)
			return answers
		}
		for range 20 {
			host := hosts[rand.IntN(len(hosts))]
			answers[seen{host, said(cache.Lookup(t.Context(), host)), at.Generation - 1}] = true
		}
	}
}

// TestTenantClient: while the files change at random, no answer is older than a change that was seen before the lookup; after a
// moment of quiet each is the server's. The cache is too small for the hosts. Warm, positions and entity tags are those
// of the real server.
func TestTenantClient(t *testing.T) {
	t.Parallel()
	changes := testrig.Size(t, 1000, 200)
	h := newRealServer(t)
	h.project(1, "One", catalog.StatusActive, "a.example", "*.w.example")
	cache := h.open(func(o *tenant.Options) {
		o.Warm = []string{"a.example", "b.example", "x.w.example"}
		o.MaxEntries, o.MaxNegative = 4, 2
	})
	warm, err := cache.Lookup(t.Context(), "a.example")
	if err != nil || warm.Name != "One" || warm.ETag == "" || warm.Labels["plan"] != "One" || warm.UUID == "" {
		t.Fatalf("%+v, %v", warm, err)
	}
	if s := cache.Status(); s.Entries != 2 || s.Negatives != 1 || s.Position != h.resolver.Position().String() {
		t.Errorf("%+v, the server is at %v", s, h.resolver.Position())
	}
	hosts := []string{"a.example", "b.example", "x.w.example", "y.w.example", "deep.y.w.example", "w.example", "c.example"}
	domains := append([]string{"*.w.example", "*.y.w.example"}, hosts...)
	done := make(chan struct{})
	var lookups sync.WaitGroup
	answers := make([]map[seen]bool, 8)
	for i := range answers {
		lookups.Go(func() { answers[i] = asker(t, cache, hosts, done) })
	}
	var was history
	note := func() {
		was = append(was, struct {
			generation uint64
			answers    map[string]string
		}{h.resolver.Position().Generation, map[string]string{}})
		for _, host := range hosts {
			was[len(was)-1].answers[host] = h.asks(host)
		}
	}
	note()
	// Each domain belongs to one of the projects, or to none.
	owned := map[string]int64{}
	for i := range changes {
		id := 1 + rand.Int64N(3)
		var mine []string
		for _, d := range domains {
			switch owner := owned[d]; {
			case owner != 0 && owner != id:
			case rand.IntN(2) == 0:
				mine, owned[d] = append(mine, d), id
			default:
				delete(owned, d)
			}
		}
		status := catalog.StatusActive
		if rand.IntN(5) == 0 {
			status = catalog.StatusSuspended
		}
		h.project(id, fmt.Sprint("Name ", i), status, mine...)
		note()
	}
	close(done)
	lookups.Wait()
	for _, some := range answers {
		for a := range some {
			if !was.fits(a) {
				t.Errorf("after the events of %d, %s is %s, which is older", a.generation, a.host, a.answer)
			}
		}
	}
	h.project(4, "Last", catalog.StatusActive, "last.example") // a random one may change nothing, and has no event then
	testrig.Eventually(t, "the last event", func() bool { return cache.Status().Position == h.resolver.Position().String() })
	for _, host := range hosts {
		got, err := cache.Lookup(t.Context(), host)
		name := said(got, err)
		if want := h.asks(host); name != want {
			t.Errorf("%s is %s, the server says %s", host, name, want)
		}
	}
}

// said is the project's name, or the word of asks for an error.
func said(t *tenant.Tenant, err error) string {
	switch {
	case errors.Is(err, tenant.ErrUnknown):
		return "unknown"
	case errors.Is(err, tenant.ErrSuspended):
		return "suspended"
	case err != nil:
		return err.Error()
	}
	return t.Name
}

func BenchmarkTenantClient(b *testing.B) {
	h := newRealServer(b)
	h.project(1, "One", catalog.StatusActive, "a.example", "*.example", "xn--bcher-kva.example")
	cache := h.open(nil)
	ctx := context.Background()
	for name, host := range map[string]string{"canonical": "a.example", "spelling": "A.Example.:443", "unicode": "bücher.example"} {
		if _, err := cache.Lookup(ctx, host); err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = cache.Lookup(ctx, host)
			}
		})
	}
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				_, _ = cache.Lookup(ctx, "a.example")
			}
		})
	})
	b.Run("over HTTP", func(b *testing.B) {
		for b.Loop() {
			h.asks("a.example")
		}
	})
}
