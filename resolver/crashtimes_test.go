package resolver_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// Clients and edges have seen the times of a change that the store loses in a crash: the next look at the files, in which
// the change is, gives the objects the same times.
func TestTimesAfterACrash(t *testing.T) {
	t.Parallel()
	mem := vfs.NewCrashableMem()
	var seconds atomic.Int64
	clock := func() time.Time { return noon.Add(time.Duration(seconds.Add(1)) * time.Second) }
	start := func() *resolver.Resolver {
		r, err := resolver.Open(resolver.Options{DataDir: "data", CacheBytes: testCacheBytes, Logger: quiet, Now: clock, Disk: onDisk(mem)})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	file := func(slug, name string, active bool) catalog.FileChange {
		p := block(slug, "shop."+slug+".example")
		p.Project.Name, p.Domains[0].Active = name, active
		u := catalog.DeriveTemplateUUID(p.Project.UUID, "T")
		p.Templates = []catalog.Template{{ID: catalog.DeriveID(catalog.KindTemplate, u), UUID: u, ProjectID: p.Project.ID, Code: "T",
			Name: name, SubjectTemplate: "s", BodyText: "b", Active: true}}
		return file(slug+".hcl", p)
	}
	times := func(r *resolver.Resolver) (all []string) {
		t.Helper()
		for _, path := range []string{"old.hcl", "new.hcl"} {
			f, err := r.TreeFile(path)
			if catalog.IsNotFound(err) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range f.Times {
				all = append(all, fmt.Sprint(path, o.Kind, o.CreatedAt, o.UpdatedAt))
			}
		}
		return all
	}
	end := func(r *resolver.Resolver) {
		t.Helper()
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	r := start()
	apply(t, r, file("old", "Old", true))
	end(r)

	r = start()
	was := times(r)
	apply(t, r, file("old", "Two", true))
	apply(t, r, file("new", "New", true))
	apply(t, r, file("old", "Three", true), file("new", "New", false))
	want := times(r)
	image := mem.CrashClone(vfs.CrashCloneCfg{})
	end(r)
	mem = image

	r = start()
	if got := times(r); !slices.Equal(got, was) {
		t.Fatalf("the store has not lost the changes: %q", got)
	}
	apply(t, r, file("old", "Three", true), file("new", "New", false))
	if got := times(r); !slices.Equal(got, want) {
		t.Errorf("after the crash\n%q, before\n%q", got, want)
	}
	apply(t, r, file("old", "Four", true), file("new", "New", false))
	if got := times(r); got[0] == want[0] || got[1] != want[1] || got[2] == want[2] || !slices.Equal(got[3:], want[3:]) {
		t.Errorf("after a change of a name\n%q, before\n%q", got, want)
	}
	end(r)

	// Of what somebody has changed since, nobody has seen the times.
	r = start()
	apply(t, r, file("old", "Five", true))
	before := times(r)
	image = mem.CrashClone(vfs.CrashCloneCfg{})
	end(r)
	mem = image
	r = start()
	apply(t, r, file("old", "Six", true))
	if got := times(r); got[0] == before[0] || got[1] != before[1] {
		t.Errorf("after a change that came meanwhile\n%q, before\n%q", got, before)
	}
	end(r)
}
