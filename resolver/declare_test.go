package resolver_test

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// noon is the clock of the tests.
var noon = time.Date(2026, 1, 31, 9, 30, 0, 123456000, time.UTC)

func block(slug string, domains ...string) catalog.ProjectConfig {
	u := catalog.DeriveProjectUUID(slug)
	p := catalog.ProjectConfig{
		Project: catalog.Project{
			ID: catalog.DeriveID(catalog.KindProject, u), UUID: u, Name: "The " + slug, Slug: slug, Status: catalog.StatusActive,
		},
		Service: catalog.NewServiceSettings(),
		Auth:    catalog.NewAuthSettings(),
	}
	for _, name := range domains {
		du := catalog.DeriveDomainUUID(u, name)
		p.Domains = append(p.Domains, catalog.Domain{
			ID: catalog.DeriveID(catalog.KindDomain, du), UUID: du, ProjectID: p.Project.ID, Name: name, Active: true,
		})
	}
	return p
}

func file(path string, projects ...catalog.ProjectConfig) catalog.FileChange {
	return catalog.FileChange{
		Path: path, Declared: &catalog.Declared{Projects: projects}, Bytes: []byte("bytes of " + path),
		Row: &catalog.FileRow{Stamp: catalog.Stamp{Size: 1, ModTime: noon}},
	}
}

func gone(path string) catalog.FileChange { return catalog.FileChange{Path: path} }

// quiet drops what the resolver logs.
var quiet = slog.New(slog.DiscardHandler)

// testCacheBytes is room for all answers of a test. The caches of the default size take 50 ms of CPU time to close,
// because ristretto clears them first, which is most of what a small test would cost.
const testCacheBytes = 4 << 20

// open opens a resolver until the end of the test, with small caches unless o says otherwise.
func open(t testing.TB, o resolver.Options) *resolver.Resolver {
	t.Helper()
	if o.CacheBytes == 0 {
		o.CacheBytes = testCacheBytes
	}
	if o.Logger == nil {
		o.Logger = quiet
	}
	if o.Now == nil {
		o.Now = func() time.Time { return noon }
	}
	r, err := resolver.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func apply(t testing.TB, r *resolver.Resolver, files ...catalog.FileChange) uint64 {
	t.Helper()
	generation, err := r.Apply(&catalog.Change{Files: files})
	if err != nil {
		t.Fatal(err)
	}
	return generation
}

func resolve(t testing.TB, r *resolver.Resolver, name string, form resolver.Form) *resolver.Answer {
	t.Helper()
	a, err := r.Resolve([]byte(name), form)
	if err != nil {
		t.Fatalf("resolve %q: %v", name, err)
	}
	return a
}

// code returns the code of a catalog error, or the text of another error.
func code(err error) catalog.Code {
	var e *catalog.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return catalog.Code(fmt.Sprint(err))
}
