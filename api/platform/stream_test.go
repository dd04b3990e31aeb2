package platform

import (
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// A stream that fails ends the connection in the middle, and a panic in it does not end the process.
func TestStreamFailureCutsTheAnswer(t *testing.T) {
	r, err := resolver.Open(resolver.Options{CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	d := &catalog.Declared{Projects: []catalog.ProjectConfig{{
		Project: catalog.Project{ID: 1, UUID: catalog.DeriveProjectUUID("acme"), Name: "Acme", Slug: "acme", Status: catalog.StatusActive},
		Service: catalog.NewServiceSettings(), Auth: catalog.NewAuthSettings(),
	}}}
	change := &catalog.Change{Files: []catalog.FileChange{{Path: "a.hcl", Row: &catalog.FileRow{Refs: d.Refs()}, Declared: d}}}
	if _, err := r.Apply(change); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	stream := &listStream{log: log, rows: []resolver.Found{{ID: 1}}, appendRow: appendProject} // no resolver: it panics
	if _, err := io.ReadAll(stream); err == nil {
		t.Error("a panic in a stream went unnoticed")
	}
	var resp fasthttp.Response
	resp.SetBodyStream(&listStream{log: log, from: r, rows: []resolver.Found{{ID: 1}, {ID: 99}, {ID: 1}}, appendRow: appendProject}, -1)
	if body := resp.Body(); strings.Count(string(body), `"slug":"acme"`) != 2 || !json.Valid(body) {
		t.Errorf("a project that has gone meanwhile spoils the list: %s", body)
	}
}
