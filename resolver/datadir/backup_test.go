package datadir_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/datadir"
	"fingerpost/resolver/store"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// backup returns an archive of an open store.
func backup(t *testing.T, s *service) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := s.Backup(&b, noon); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// smallBackup is a backup of a store with two projects, whose changes are in the log only.
func smallBackup(t *testing.T) []byte {
	t.Helper()
	s := open(t, newDir(t), store.Options{})
	apply(t, s, noon, file("a.hcl", declare(block("a", "a.example"), block("b", "b.example", "*.b.example"))))
	return backup(t, s)
}

func restore(dir string, packed []byte, o datadir.RestoreOptions) (*datadir.Restored, error) {
	o.Now = noon
	return datadir.Restore(dir, bytes.NewReader(packed), o)
}

// tree returns all files of a folder, with contents.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.Walk(dir, func(name string, info os.FileInfo, err error) error {
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		b, err := os.ReadFile(name)
		all[strings.TrimPrefix(name, dir)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestBackupUnderLoad: each change gives two projects the same name, so a backup that is not consistent shows.
func TestBackupUnderLoad(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("three backups of large tables")
	}
	s := open(t, newDir(t), store.Options{})
	change := func(n int) {
		a, b := block("a", "a.example"), block("b", fmt.Sprintf("n%d.example", n))
		a.Project.Name, b.Project.Name = fmt.Sprint(n), fmt.Sprint(n)
		apply(t, s, noon, file("a.hcl", declare(a)), file("b.hcl", declare(b)))
		if n%16 == 0 {
			apply(t, s, noon, bulky(n%32)) // to create and remove tables
		}
	}
	change(0)
	stop, done := make(chan struct{}), sync.WaitGroup{}
	done.Go(func() {
		for n := 1; ; n++ {
			select {
			case <-stop:
				return
			default:
				change(n)
			}
		}
	})
	backups := testrig.Size(t, 3, 1)
	var archives [][]byte
	var least []uint64
	for range backups {
		least = append(least, s.Generation())
		archives = append(archives, backup(t, s))
	}
	close(stop)
	done.Wait()
	for i, packed := range archives {
		dir := newDir(t)
		restored, err := restore(dir, packed, datadir.RestoreOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got := open(t, dir, store.Options{})
		if g := got.Generation(); g < least[i] || g != restored.Manifest.Generation {
			t.Errorf("generation %d, the manifest says %d, and it was %d before", g, restored.Manifest.Generation, least[i])
		}
		var a, b catalog.ProjectConfig
		for p, slug := range map[*catalog.ProjectConfig]string{&a: "a", &b: "b"} {
			want := block(slug)
			err := got.View(func(v *store.View) error {
				if found, err := v.Project(p, want.Project.ID); err != nil || !found {
					t.Fatalf("project %s: %v, %v", slug, found, err)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		var d catalog.Domain
		var found bool
		err = got.View(func(v *store.View) (err error) {
			found, err = v.Domain(&d, []byte("n"+b.Project.Name+".example"))
			return err
		})
		if a.Project.Name != b.Project.Name || !found || err != nil {
			t.Errorf("of two moments: %q and %q, domain %v, %v", a.Project.Name, b.Project.Name, found, err)
		}
	}
	if len(tree(t, t.TempDir())) != 0 || s.Err() != nil {
		t.Error("the store has suffered")
	}
}

// TestBackupOfStoppedStore: it equals the backup of the open store, and nothing in the folder changes.
func TestBackupOfStoppedStore(t *testing.T) {
	t.Parallel()
	testrig.Slow(t)
	dir := newDir(t)
	s := open(t, dir, store.Options{})
	apply(t, s, noon, file("a.hcl", declare(block("a", "a.example"))))
	if err := datadir.BackupDir(io.Discard, dir, noon); !errors.Is(err, store.ErrLocked) {
		t.Errorf("of a store that is open: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	before := tree(t, dir)
	var b bytes.Buffer
	if err := datadir.BackupDir(&b, dir, noon); err != nil {
		t.Fatal(err)
	}
	if after := tree(t, dir); !maps.Equal(before, after) {
		t.Error("the folder has changed")
	}
	fresh := newDir(t)
	if _, err := restore(fresh, b.Bytes(), datadir.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	again := open(t, fresh, store.Options{})
	if p := getProject(t, again, "a"); p == nil || !p.Project.CreatedAt.Equal(noon.Truncate(1000)) {
		t.Errorf("restored: %+v", p)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{newDir(t), t.TempDir()} {
		if err := datadir.BackupDir(io.Discard, bad, noon); err == nil {
			t.Errorf("a backup of %s, where there is no store", bad)
		}
	}
	flipTable(t, fresh)
	if err := datadir.BackupDir(io.Discard, fresh, noon); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("of a damaged store: %v", err)
	}
}

// flipTable compacts the store in dir into tables and flips a bit of each.
func flipTable(t *testing.T, dir string) {
	t.Helper()
	s := open(t, dir, store.Options{})
	for n := range 40 { // more than a memtable
		apply(t, s, noon, bulky(n))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	tables, _ := filepath.Glob(filepath.Join(dir, "*.sst"))
	if len(tables) == 0 {
		t.Fatal("no tables to flip a bit of")
	}
	for _, name := range tables {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)/2] ^= 1
		if err := os.WriteFile(name, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBackupFailsAlone: a disk that refuses the checkpoint fails the backup, not the store.
func TestBackupFailsAlone(t *testing.T) {
	t.Parallel()
	for _, kind := range []errorfs.OpKind{errorfs.OpCreate, errorfs.OpLink, errorfs.OpMkdirAll, errorfs.OpFileWrite, errorfs.OpFileSync, errorfs.OpFileClose} {
		d := newBrokenDisk(vfs.NewMem(), func(op errorfs.Op) error {
			if op.Kind == kind && strings.Contains(op.Path, "checkpoint.tmp") {
				return &os.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
			}
			return nil
		})
		s := open(t, "store", store.Options{FS: d})
		apply(t, s, noon, bulky(1))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, "store", store.Options{FS: d}) // makes a table of the log, which a checkpoint links
		d.broken.Store(true)
		within(t, "a backup on a full disk", func() {
			err := s.Backup(io.Discard, noon)
			if kind != errorfs.OpLink && kind != errorfs.OpFileClose && !errors.Is(err, syscall.ENOSPC) { // a link that fails becomes a copy
				t.Errorf("%v fails: %v", kind, err)
			}
		})
		d.broken.Store(false)
		apply(t, s, noon, file("a.hcl", declare(block("a"))))
		if err := s.Err(); err != nil {
			t.Errorf("%v fails: the store failed too: %v", kind, err)
		}
		backup(t, s)
	}
	mem := open(t, "", store.Options{})
	if err := mem.Backup(io.Discard, noon); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a store in memory: %v", err)
	}
}

func TestOneBackupAtATime(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	s := open(t, dir, store.Options{})
	second := writerFunc(func(p []byte) (int, error) {
		if err := s.Backup(io.Discard, noon); !errors.Is(err, datadir.ErrBackupRuns) {
			t.Errorf("a second one meanwhile: %v", err)
		}
		return 0, errors.New("the caller has gone")
	})
	if err := s.Backup(second, noon); err == nil {
		t.Error("no error though nothing could be written")
	}
	backup(t, s)
	if _, err := os.Stat(filepath.Join(dir, "checkpoint.tmp")); !os.IsNotExist(err) {
		t.Errorf("the checkpoint stays: %v", err)
	}
	// The next start removes what a killed process left.
	if err := errors.Join(s.Close(), os.Mkdir(filepath.Join(dir, "checkpoint.tmp"), 0o755)); err != nil {
		t.Fatal(err)
	}
	open(t, dir, store.Options{})
	if _, err := os.Stat(filepath.Join(dir, "checkpoint.tmp")); !os.IsNotExist(err) {
		t.Errorf("a checkpoint left by another process stays: %v", err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
