package store_test

import (
	"slices"
	"testing"
	"time"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/store"
)

// TestOverlay: an Overlay shows its files over what is stored, keeps the times of what only moves, and bears two files
// that claim one name. Nothing of it is stored, and what it lacks fails nothing of the store.
func TestOverlay(t *testing.T) {
	t.Parallel()
	noon := noon.Truncate(time.Microsecond)
	s := open(t, "", store.Options{})
	acme, other := block("acme", "acme.example", "shop.example"), block("other", "other.example")
	apply(t, s, noon, file("acme.hcl", declare(acme)), file("other.hcl", declare(other)), file("gone.hcl", declare(block("gone"))))
	o, err := s.Overlay(noon.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	put := func(files ...catalog.FileChange) *store.Effect {
		t.Helper()
		e, err := o.Put(files...)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	domains := func(p *catalog.ProjectConfig) (names []string) {
		t.Helper()
		err := o.View(func(v *store.View) error {
			return v.Domains(p.Project.ID, func(d *catalog.Domain) bool { names = append(names, d.Name); return true })
		})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(names)
		return names
	}
	project := func(st *store.State, p *catalog.ProjectConfig) *catalog.ProjectConfig {
		t.Helper()
		found := new(catalog.ProjectConfig)
		if there, err := st.Project(found, p.Project.ID); err != nil || !there {
			t.Fatalf("%s: %v, %v", p.Project.Slug, there, err)
		}
		return found
	}
	put(gone("acme.hcl"), file("moved.hcl", declare(acme)))
	if p := project(&o.State, &acme); !p.Project.CreatedAt.Equal(noon) || !p.Project.UpdatedAt.Equal(noon) {
		t.Errorf("a project that moves to another file is of %v, changed %v", p.Project.CreatedAt, p.Project.UpdatedAt)
	}
	changed := other
	changed.Project.Name = "Changed"
	changed.Domains = append(slices.Clone(other.Domains), domain(&other, "shop.example"))
	if e := put(file("other.hcl", declare(changed)), gone("gone.hcl")); len(e.Projects) != 2 {
		t.Errorf("it touches %v", e.Projects)
	}
	if p := project(&o.State, &other); p.Project.Name != "Changed" || !p.Project.UpdatedAt.Equal(noon.Add(time.Hour)) {
		t.Errorf("%+v", p.Project)
	}
	if got := domains(&other); !slices.Equal(got, []string{"other.example", "shop.example"}) {
		t.Errorf("the last file that claims a name has %q", got)
	}
	if got := domains(&acme); !slices.Equal(got, []string{"acme.example"}) {
		t.Errorf("the first has %q", got)
	}
	apply(t, s, noon, file("new.hcl", declare(block("new", "new.example"))))
	if d := new(catalog.Domain); true {
		if found, err := o.Domain(d, "new.example"); !found || err != nil {
			t.Errorf("what is stored meanwhile: %v, %v", found, err)
		}
	}
	put(gone("other.hcl"))
	if got := domains(&other); len(got) != 0 {
		t.Errorf("a project that is gone has %q", got)
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
	if p := project(&s.State, &other); p.Project.Name != other.Project.Name || s.Err() != nil || s.Counts().Projects != 4 {
		t.Errorf("the store has %+v, %v, %+v", p.Project, s.Err(), s.Counts())
	}
	if _, err := s.LastGood("moved.hcl"); err != nil {
		t.Error(err)
	}
}
