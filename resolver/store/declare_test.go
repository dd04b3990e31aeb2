package store_test

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/store"
)

// noon is the clock of the tests.
var noon = time.Date(2026, 1, 31, 12, 0, 0, 123456789, time.UTC)

// block declares an active project with the given domains.
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
		p.Domains = append(p.Domains, domain(&p, name))
	}
	return p
}

func domain(p *catalog.ProjectConfig, name string) catalog.Domain {
	u := catalog.DeriveDomainUUID(p.Project.UUID, name)
	return catalog.Domain{ID: catalog.DeriveID(catalog.KindDomain, u), UUID: u, ProjectID: p.Project.ID, Name: name, Active: true}
}

func template(p *catalog.ProjectConfig, code string) catalog.Template {
	t := catalog.Template{Code: code, Name: code, SubjectTemplate: "Hello", BodyText: "Hello {{userName}}", Active: true}
	var owner catalog.UUID
	if p != nil {
		owner, t.ProjectID = p.Project.UUID, p.Project.ID
	}
	t.UUID = catalog.DeriveTemplateUUID(owner, code)
	t.ID = catalog.DeriveID(catalog.KindTemplate, t.UUID)
	return t
}

func declare(projects ...catalog.ProjectConfig) *catalog.Declared {
	return &catalog.Declared{Projects: projects}
}

func file(path string, d *catalog.Declared) catalog.FileChange {
	return catalog.FileChange{
		Path: path, Declared: d, Bytes: []byte("bytes of " + path),
		Row: &catalog.FileRow{Stamp: catalog.Stamp{Size: 1, ModTime: noon, Inode: 7, Hash: [32]byte{1}}},
	}
}

func gone(path string) catalog.FileChange { return catalog.FileChange{Path: path} }

func change(files ...catalog.FileChange) *catalog.Change { return &catalog.Change{Files: files} }

func open(t *testing.T, dir string, o store.Options) *store.Store {
	t.Helper()
	s, err := store.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func apply(t *testing.T, s *store.Store, now time.Time, files ...catalog.FileChange) *store.Effect {
	t.Helper()
	e, err := s.Apply(change(files...), 1, now, func(*store.Effect) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func getDomain(t *testing.T, s *store.Store, name string) *catalog.Domain {
	t.Helper()
	d := new(catalog.Domain)
	var found bool
	err := s.View(func(v *store.View) (err error) { found, err = v.Domain(d, []byte(name)); return err })
	if err != nil {
		t.Fatal(err)
	}
	if !found {
		return nil
	}
	return d
}

func getProject(t *testing.T, s *store.Store, slug string) *catalog.ProjectConfig {
	t.Helper()
	p := new(catalog.ProjectConfig)
	var found bool
	err := s.View(func(v *store.View) (err error) {
		found, err = v.ProjectBySlug(p, slug)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if !found {
		return nil
	}
	return p
}

// dump lists everything that a reader can see, to compare two stores.
func dump(t *testing.T, s *store.Store) []string {
	t.Helper()
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var ids []int64
	must(s.EachProjectID(func(id int64) bool { ids = append(ids, id); return true }))
	for _, id := range ids {
		p := new(catalog.ProjectConfig)
		must(s.View(func(v *store.View) error { _, err := v.Project(p, id); return err }))
		add("project %+v %+v %+v %+v", p.Project, p.Service, p.Auth, p.SMTP)
		must(s.View(func(v *store.View) error {
			return v.Domains(id, func(d *catalog.Domain) bool { add("domain %+v", *d); return true })
		}))
		must(s.Templates(id, func(x *catalog.Template) bool { add("template %+v", *x); return true }))
		if by := getProject(t, s, p.Project.Slug); by == nil || by.Project.ID != id {
			t.Errorf("slug %s does not lead to its project", p.Project.Slug)
		}
	}
	must(s.Templates(0, func(x *catalog.Template) bool { add("default template %+v", *x); return true }))
	must(s.Keys(func(k *catalog.Key) bool { add("key %+v", *k); return true }))
	d, err := s.Defaults()
	must(err)
	if d != nil {
		add("defaults %+v %+v", d.Service, d.Auth)
	}
	sealing, err := s.Sealing()
	must(err)
	add("sealing %+v", sealing)
	must(s.Files(func(path string, row *catalog.FileRow) bool {
		b, err := s.LastGood(path)
		must(err)
		if len(b) > 10_000 { // the files of a bulk: 42 MB of quoted text take seconds
			b = fmt.Appendf(nil, "%x", sha256.Sum256(b))
		}
		add("file %s %+v %q", path, *row, b)
		return true
	}))
	add("counts %+v", s.Counts())
	return out
}

func newDir(t *testing.T) string { return filepath.Join(t.TempDir(), "data") }
