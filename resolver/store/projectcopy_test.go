package store

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"fingerpost/resolver/catalog"
)

// manyDomains declares a project with that many domains.
func manyDomains(name string, domains int) *catalog.Change {
	u := catalog.DeriveProjectUUID("crowd")
	p := catalog.ProjectConfig{
		Project: catalog.Project{ID: catalog.DeriveID(catalog.KindProject, u), UUID: u, Name: name, Slug: "crowd", Status: catalog.StatusActive,
			Labels: []catalog.Label{{Name: "name", Value: name}}},
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
		if found, err = readProject(s, &single, d.ProjectID); err != nil || !found || !reflect.DeepEqual(single.Project, p.Project) {
			t.Errorf("beside %s stands %+v, alone %+v", host, p.Project, single.Project)
		}
		if name = p.Project.Name; !slices.Equal(p.Project.Labels, []catalog.Label{{Name: "name", Value: name}}) {
			t.Errorf("next to %s are the labels %v", host, p.Project.Labels)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return name, copied
}

func TestProjectBesideItsDomains(t *testing.T) {
	t.Parallel()
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
		if _, err := s.Apply(manyDomains(want, step.domains), 1, midnight.Add(time.Duration(i)*time.Hour), func(*Effect) error { return nil }); err != nil {
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
	t.Parallel()
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
	}}}, 1, midnight, func(*Effect) error { return nil })
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

// TestLabelsAndCertificates: both are stored, alone they move updatedAt of their own object only, and a copy of the
// project next to a domain has the labels.
func TestLabelsAndCertificates(t *testing.T) {
	t.Parallel()
	s, err := Open("", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	yes := true
	for i, change := range []func(p *catalog.ProjectConfig){
		func(p *catalog.ProjectConfig) { p.Project.Labels = nil },
		func(p *catalog.ProjectConfig) { p.Project.Labels = []catalog.Label{{Name: "plan", Value: "gold"}} },
		func(p *catalog.ProjectConfig) { p.Domains[1].Certificates = &yes },
	} {
		c := manyDomains("p", 2)
		declared := c.Files[0].Declared
		declared.Projects[0].Project.Labels = []catalog.Label{{Name: "plan", Value: "gold"}}
		change(&declared.Projects[0])
		if _, err := s.Apply(c, 1, midnight.Add(time.Duration(i)*time.Hour), func(*Effect) error { return nil }); err != nil {
			t.Fatal(err)
		}
		err := s.Borrow(func(r *Reader) error {
			var d catalog.Domain
			var p catalog.ProjectConfig
			if found, err := r.Domain(&d, []byte("n1.example")); !found || err != nil {
				return fmt.Errorf("%v, %w", found, err)
			}
			want := &declared.Projects[0]
			if found, err := r.Project(&p, d.ProjectID); !found || err != nil || !slices.Equal(p.Project.Labels, want.Project.Labels) {
				t.Errorf("step %d: labels %v, %v", i, p.Project.Labels, err)
			}
			if !reflect.DeepEqual(d.Certificates, want.Domains[1].Certificates) {
				t.Errorf("step %d: certificates %v", i, d.Certificates)
			}
			project, domain := midnight.Add(time.Duration(min(i, 1))*time.Hour), midnight
			if i == 2 {
				domain = midnight.Add(2 * time.Hour)
			}
			if !p.Project.UpdatedAt.Equal(project) || !d.UpdatedAt.Equal(domain) {
				t.Errorf("step %d: updated at %v and %v", i, p.Project.UpdatedAt, d.UpdatedAt)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
