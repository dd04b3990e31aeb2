package node

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// TestTellChanges: the mailer learns at once which project's files have changed, and that any may have.
func TestTellChanges(t *testing.T) {
	r, err := resolver.Open(resolver.Options{CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	apply := func(path string, d *catalog.Declared) {
		t.Helper()
		file := catalog.FileChange{Path: path, Declared: d, Bytes: []byte(path), Row: &catalog.FileRow{Refs: d.Refs()}}
		if _, err := r.Apply(&catalog.Change{Files: []catalog.FileChange{file}}); err != nil {
			t.Fatal(err)
		}
	}
	project := func(id int64, slug, host string) *catalog.Declared {
		p := catalog.ProjectConfig{Project: catalog.Project{ID: id, UUID: catalog.DeriveProjectUUID(slug), Name: slug, Slug: slug, Status: catalog.StatusActive},
			Service: catalog.NewServiceSettings(), Auth: catalog.NewAuthSettings()}
		p.SMTP = &catalog.SMTPConfig{Host: host, FromEmail: "a@b.example", Active: true}
		return &catalog.Declared{Projects: []catalog.ProjectConfig{p}}
	}
	apply("one.hcl", project(1, "one", "a.example"))
	apply("two.hcl", project(2, "two", "a.example"))

	var mu sync.Mutex
	var told []int64
	expect := func(what string, id int64) {
		t.Helper()
		testrig.Eventually(t, fmt.Sprintf("%s: somebody is told of %d", what, id), func() bool {
			mu.Lock()
			defer mu.Unlock()
			if !slices.Contains(told, id) {
				return false
			}
			told = nil
			return true
		})
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tellChanges(ctx, r.Events(), func(id int64) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, id)
		})
	}()
	expect("the beginning", 0)
	apply("two.hcl", project(2, "two", "b.example"))
	expect("another host", 2)
	apply("one.hcl", &catalog.Declared{})
	expect("a removed project", 1)
	apply("defaults.hcl", &catalog.Declared{Defaults: &catalog.Defaults{}})
	expect("other defaults", 0)
	stop()
	<-ended
}
