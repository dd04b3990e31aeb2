package store

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"fingerpost/resolver/catalog"

	"github.com/cockroachdb/pebble/v2"
)

// crowd declares a project of so many domains.
func crowd(name string, domains int) *catalog.Change {
	u := catalog.DeriveProjectUUID("crowd")
	p := catalog.ProjectConfig{
		Project: catalog.Project{ID: catalog.DeriveID(catalog.KindProject, u), UUID: u, Name: name, Slug: "crowd", Status: catalog.StatusActive},
		Service: catalog.NewServiceSettings(),
		Auth:    catalog.NewAuthSettings(),
	}
	for i := range domains {
		host := fmt.Sprintf("n%d.example", i)
		du := catalog.DeriveDomainUUID(u, host)
		p.Domains = append(p.Domains, catalog.Domain{
			ID: catalog.DeriveID(catalog.KindDomain, du), UUID: du, ProjectID: p.Project.ID, Name: host, Active: true,
		})
	}
	return &catalog.Change{Files: []catalog.FileChange{{
		Path: "crowd.hcl", Row: new(catalog.FileRow), Declared: &catalog.Declared{Projects: []catalog.ProjectConfig{p}},
	}}}
}

var midnight = time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)

// look reads a domain and its project as a miss does, compares them with the other way to read them, and returns the
// project's name.
func look(t *testing.T, s *Store, host string) (name string, beside bool) {
	t.Helper()
	err := s.Borrow(func(r *Reader) error {
		var d catalog.Domain
		found, err := r.Domain(&d, []byte(host))
		if err != nil || !found {
			t.Fatalf("%s: %v, %v", host, found, err)
		}
		beside = len(r.beside) > 0
		var p, single catalog.ProjectConfig
		if found, err = r.Project(&p, d.ProjectID); err != nil || !found {
			t.Fatalf("project of %s: %v, %v", host, found, err)
		}
		if found, err = readProject(now{s.db}, &single, d.ProjectID); err != nil || !found || single.Project != p.Project {
			t.Errorf("beside %s stands %+v, alone %+v", host, p.Project, single.Project)
		}
		name = string(append([]byte(nil), p.Project.Name...))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return name, beside
}

func TestProjectBesideItsDomains(t *testing.T) {
	s, err := Open("", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i, step := range []struct {
		domains int
		beside  bool
	}{{3, true}, {3, true}, {maxBeside, true}, {maxBeside + 1, false}, {maxBeside + 1, false}, {maxBeside, true}, {1, true}} {
		want := fmt.Sprint("name ", i)
		if _, err := s.Apply(crowd(want, step.domains), midnight.Add(time.Duration(i)*time.Hour), func(*Preview) {}); err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{0, step.domains - 1} {
			if name, beside := look(t, s, fmt.Sprintf("n%d.example", n)); name != want || beside != step.beside {
				t.Errorf("step %d, domain %d of %d: %q, beside %v", i, n, step.domains, name, beside)
			}
		}
	}
}

// TestUpgrade opens a store of format 1, in which domains and projects stood apart, also one whose upgrade was cut off.
func TestUpgrade(t *testing.T) {
	for _, done := range []int{0, 2} {
		dir := filepath.Join(t.TempDir(), "data")
		s, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Apply(crowd("old", 5), midnight, func(*Preview) {}); err != nil {
			t.Fatal(err)
		}
		b := s.db.NewBatch()
		for i := done; i < 5; i++ {
			key := appendTextKey(nil, prefixDomain, fmt.Sprintf("n%d.example", i))
			_, err := now{s.db}.get(key, func(value []byte) error {
				domain, _ := split(value)
				return b.Set(key, domain, nil)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Set(keyFormat, binary.AppendUvarint(nil, 1), nil); err != nil {
			t.Fatal(err)
		}
		if err := b.Commit(pebble.Sync); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if s, err = Open(dir, Options{}); err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for i := range 5 {
			if name, beside := look(t, s, fmt.Sprintf("n%d.example", i)); name != "old" || !beside {
				t.Errorf("%d done before: n%d.example: %q, beside %v", done, i, name, beside)
			}
		}
		if v, err := s.uint(keyFormat); err != nil || v != formatVersion {
			t.Errorf("format %d, %v", v, err)
		}
	}
}
