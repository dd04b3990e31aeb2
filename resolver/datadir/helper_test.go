package datadir_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/datadir"
	"fingerpost/resolver/ledger"
	"fingerpost/resolver/store"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// noon is the clock of the tests.
var noon = time.Date(2026, 1, 31, 12, 0, 0, 123456789, time.UTC)

// A service is an open store and ledger, as in a running server.
type service struct {
	*store.Store
	ledger *ledger.Ledger
	source datadir.Source
}

func (s *service) Backup(w io.Writer, now time.Time) error {
	return s.source.Backup(w, s.Store, s.ledger, now)
}

func (s *service) Close() error { return errors.Join(s.Store.Close(), s.ledger.Close()) }

func open(t *testing.T, dir string, o store.Options) *service {
	t.Helper()
	st, err := store.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	ledgerDir := ""
	if dir != "" {
		ledgerDir = filepath.Join(dir, ledger.Folder)
	}
	l, err := ledger.Open(ledgerDir, ledger.Options{FS: o.FS})
	if err != nil {
		t.Fatal(err)
	}
	s := &service{Store: st, ledger: l}
	t.Cleanup(func() { s.Close() })
	return s
}

func newDir(t *testing.T) string { return filepath.Join(t.TempDir(), "data") }

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
		u := catalog.DeriveDomainUUID(p.Project.UUID, name)
		p.Domains = append(p.Domains, catalog.Domain{
			ID: catalog.DeriveID(catalog.KindDomain, u), UUID: u, ProjectID: p.Project.ID, Name: name, Active: true,
		})
	}
	return p
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

// bulky returns a file change of an incompressible mebibyte.
func bulky(n int) catalog.FileChange {
	f := file(fmt.Sprintf("bulk%d.hcl", n), declare(block(fmt.Sprintf("bulk%d", n), fmt.Sprintf("bulk%d.example", n))))
	f.Bytes = make([]byte, 1<<20)
	random := rand.NewChaCha8([32]byte{byte(n)})
	random.Read(f.Bytes)
	return f
}

func apply(t *testing.T, s *service, now time.Time, files ...catalog.FileChange) {
	t.Helper()
	if _, err := s.Apply(&catalog.Change{Files: files}, 1, now, func(*store.Effect) error { return nil }); err != nil {
		t.Fatal(err)
	}
}

func getProject(t *testing.T, s *service, slug string) *catalog.ProjectConfig {
	t.Helper()
	p := new(catalog.ProjectConfig)
	var found bool
	err := s.View(func(v *store.View) (err error) { found, err = v.ProjectBySlug(p, slug); return err })
	if err != nil {
		t.Fatal(err)
	}
	if !found {
		return nil
	}
	return p
}

// A brokenDisk fails chosen operations while broken is set.
type brokenDisk struct {
	vfs.FS
	broken atomic.Bool
}

func newBrokenDisk(base vfs.FS, fails func(errorfs.Op) error) *brokenDisk {
	d := new(brokenDisk)
	d.FS = errorfs.Wrap(base, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if !d.broken.Load() {
			return nil
		}
		return fails(op)
	}))
	return d
}

// within fails the test when f hangs.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(testrig.Patience):
		t.Fatal(what, "hangs")
	}
}
