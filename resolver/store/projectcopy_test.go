package store

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"fingerpost/resolver/catalog"
)

// manyDomains declares a project with that many domains.
func manyDomains(name string, domains int) *catalog.Change {
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

// look reads a domain and its project as a miss does, compares them with the other read path, and returns the project's
// name.
func look(t *testing.T, s *Store, host string) (name string, copied bool) {
	t.Helper()
	err := s.Borrow(func(r *Reader) error {
		var d catalog.Domain
		found, err := r.Domain(&d, []byte(host))
		if err != nil || !found {
			t.Fatalf("%s: %v, %v", host, found, err)
		}
		copied = len(r.projectCopy) > 0
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
	return name, copied
}

func TestProjectBesideItsDomains(t *testing.T) {
	s, err := Open("", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i, step := range []struct {
		domains int
		copied  bool
	}{{3, true}, {3, true}, {maxCopies, true}, {maxCopies + 1, false}, {maxCopies + 1, false}, {maxCopies, true}, {1, true}} {
		want := fmt.Sprint("name ", i)
		if _, err := s.Apply(manyDomains(want, step.domains), midnight.Add(time.Duration(i)*time.Hour), func() {}); err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{0, step.domains - 1} {
			if name, copied := look(t, s, fmt.Sprintf("n%d.example", n)); name != want || copied != step.copied {
				t.Errorf("step %d, domain %d of %d: %q, beside %v", i, n, step.domains, name, copied)
			}
		}
	}
}

// TestDomainsBelow expects the names below a suffix, not names that merely end in the same letters.
func TestDomainsBelow(t *testing.T) {
	s, err := Open("", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	u := catalog.DeriveProjectUUID("p")
	p := catalog.ProjectConfig{Project: catalog.Project{ID: 1, UUID: u, Name: "p", Slug: "p", Status: catalog.StatusActive},
		Service: catalog.NewServiceSettings(), Auth: catalog.NewAuthSettings()}
	for i, name := range []string{"b.example", "*.b.example", "a.b.example", "*.a.b.example", "x.a.b.example", "a-b.example", "ab.example", "a.b.example.com", "example"} {
		p.Domains = append(p.Domains, catalog.Domain{ID: int64(i + 1), UUID: catalog.DeriveDomainUUID(u, name), ProjectID: 1, Name: name, Active: true})
	}
	_, err = s.Apply(&catalog.Change{Files: []catalog.FileChange{{
		Path: "p.hcl", Row: new(catalog.FileRow), Declared: &catalog.Declared{Projects: []catalog.ProjectConfig{p}},
	}}}, midnight, func() {})
	if err != nil {
		t.Fatal(err)
	}
	f := func(suffix string, want ...string) {
		t.Helper()
		var got []string
		err := s.DomainsBelow(suffix, func(d *catalog.Domain) bool {
			got = append(got, d.Name)
			return true
		})
		slices.Sort(got)
		slices.Sort(want)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("below %s: %v, %v; want %v", suffix, got, err, want)
		}
	}
	f("b.example", "a.b.example", "*.a.b.example", "x.a.b.example")
	f("a.b.example", "x.a.b.example")
	f("example", "b.example", "*.b.example", "a.b.example", "*.a.b.example", "x.a.b.example", "a-b.example", "ab.example")
	f("le")
	f("none.example")
}
