package resolver_test

import (
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/datadir"
	"fingerpost/resolver/store"
)

// content maps the files of a folder to their hashes, except the lock, which holds the pid of its last owner.
func content(t *testing.T, dir string) map[string][32]byte {
	t.Helper()
	all := map[string][32]byte{}
	if err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == "LOCK" {
			return err
		}
		b, err := os.ReadFile(name)
		all[name] = sha256.Sum256(b)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestStored reads the store of a stopped server without changing it.
func TestStored(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	r, err := resolver.Open(resolver.Options{DataDir: dir, CacheBytes: testCacheBytes, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	acme := block("acme", "a.example", "*.a.example")
	acme.SMTP = &catalog.SMTPConfig{Host: "smtp.example", FromEmail: "a@b.example", Active: true}
	auth := catalog.NewAuthSettings()
	auth.Password.MinLength, auth.Said = 11, catalog.FieldSet(0).With(12)
	f := file("a.hcl", acme, block("plain"))
	f.Declared.Defaults = &catalog.Defaults{Auth: &auth}
	f.Declared.Keys = []catalog.Key{{Name: "k", ID: "abcdef", Allow: catalog.MayRead}}
	f.Declared.Sealing = &catalog.Sealing{Recipients: []string{"age1x"}, Require: true}
	apply(t, r, f)
	var locked *store.LockedError
	if _, err := datadir.OpenStored(dir, quiet); !errors.As(err, &locked) || locked.PID != os.Getpid() {
		t.Errorf("while it is open: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}

	before := content(t, dir)
	s, err := datadir.OpenStored(dir, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if rows, err := s.Projects(); err != nil || len(rows) != 2 {
		t.Errorf("projects: %v %v", rows, err)
	}
	p, err := s.Project(acme.Project.ID)
	if err != nil || len(p.Domains) != 2 || p.SMTP == nil || p.SMTP.Host != "smtp.example" || p.Auth.Password.MinLength != 11 {
		t.Errorf("project: %+v %v", p, err)
	}
	if _, err := s.Project(12345); code(err) != catalog.CodeNotFound {
		t.Errorf("no such project: %v", err)
	}
	if keys, err := s.Keys(); err != nil || !reflect.DeepEqual(keys, f.Declared.Keys) {
		t.Errorf("keys: %+v %v", keys, err)
	}
	if x, err := s.Sealing(); err != nil || !reflect.DeepEqual(x, f.Declared.Sealing) {
		t.Errorf("sealing: %+v %v", x, err)
	}
	if d, err := s.Defaults(); err != nil || d == nil || d.Auth.Password.MinLength != 11 {
		t.Errorf("defaults: %+v %v", d, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if after := content(t, dir); !reflect.DeepEqual(after, before) {
		t.Errorf("the folder changed: %v, was %v", after, before)
	}
}

// TestStoredAbsent expects that no store is created.
func TestStoredAbsent(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	if _, err := datadir.OpenStored(dir, quiet); !errors.Is(err, store.ErrNoStore) {
		t.Errorf("no folder: %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("it was made")
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := datadir.OpenStored(dir, quiet); !errors.Is(err, store.ErrNoStore) {
		t.Errorf("an empty folder: %v", err)
	}
	if left := content(t, dir); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
}
