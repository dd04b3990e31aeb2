package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/store"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// manyFiles returns more than a batch takes: 1,000 files of 42 kB, each with a project whose name contains turn. With
// each turn a tenth of the domains moves to the next project.
func manyFiles(turn int) (files []catalog.FileChange) {
	for i := range 1000 {
		slug := fmt.Sprintf("p%03d", i)
		moving := (i + 1000 - turn*10) % 1000
		p := block(slug, slug+".example", fmt.Sprintf("moving%03d.example", moving))
		if moving%10 != 0 {
			p = block(slug, slug+".example")
		}
		p.Project.Name = fmt.Sprintf("turn %d", turn)
		f := file(slug+".hcl", declare(p))
		f.Bytes = bytes.Repeat(fmt.Appendf(nil, "%s %d\n", slug, turn), 6000)
		files = append(files, f)
	}
	return files
}

// withGone replaces some of the files by their removal.
func withGone(files []catalog.FileChange) []catalog.FileChange {
	for i := 7; i < len(files); i += 50 {
		files[i] = gone(files[i].Path)
	}
	return files
}

func TestBulkIsAsGoodAsBatches(t *testing.T) {
	t.Parallel()
	testrig.Thorough(t)
	batch, bulk := open(t, "", store.Options{}), open(t, t.TempDir(), store.Options{}) // in memory all are batches
	for turn := range testrig.Size(t, 3, 2) {
		at := noon.Add(time.Duration(turn) * time.Hour)
		want := apply(t, batch, at, withGone(manyFiles(turn))...)
		e := apply(t, bulk, at, withGone(manyFiles(turn))...)
		if e.Generation != want.Generation || len(e.Projects) != len(want.Projects) || len(e.Domains) != len(want.Domains) {
			t.Errorf("turn %d: generation %d, %d projects, %d domains; want %d, %d, %d", turn,
				e.Generation, len(e.Projects), len(e.Domains), want.Generation, len(want.Projects), len(want.Domains))
		}
		sameDump(t, bulk, batch)
		// A small change on top of it.
		small := file("p001.hcl", declare(block("p001", "small.example")))
		apply(t, batch, at.Add(time.Minute), small)
		apply(t, bulk, at.Add(time.Minute), small)
		sameDump(t, bulk, batch)
	}
	if bulk.Counts() != batch.Counts() {
		t.Errorf("counts %+v, want %+v", bulk.Counts(), batch.Counts())
	}
}

func TestBulkSurvivesReopening(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, store.Options{})
	apply(t, s, noon, manyFiles(0)...)
	before := dump(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(dir, "bulk", "values") // as a killed process would leave it
	if err := errors.Join(os.Mkdir(filepath.Dir(left), 0o755), os.WriteFile(left, []byte("x"), 0o644)); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, store.Options{})
	if after := dump(t, s); len(after) != len(before) {
		t.Errorf("%d lines, before %d", len(after), len(before))
	}
	if _, err := os.Stat(filepath.Dir(left)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what a bulk left is still there: %v", err)
	}
}

// A power cut leaves all of a bulk or nothing, and everything committed before it.
func TestBulkPowerCut(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("42 MB of files")
	}
	mem := vfs.NewCrashableMem()
	s := open(t, "store", store.Options{FS: mem})
	apply(t, s, noon, file("first.hcl", declare(block("first", "first.example"))))
	var during *vfs.MemFS
	_, err := s.Apply(change(manyFiles(0)...), 1, noon, func(*store.Effect) error {
		during = mem.CrashClone(vfs.CrashCloneCfg{})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	after := mem.CrashClone(vfs.CrashCloneCfg{})
	f := func(name string, disk vfs.FS, projects int) {
		t.Helper()
		c := open(t, "store", store.Options{FS: disk})
		if n := c.Counts().Projects; n != projects || getProject(t, c, "first") == nil || (getProject(t, c, "p999") == nil) != (projects == 1) {
			t.Errorf("%s: %d projects, want %d with the first", name, n, projects)
		}
	}
	f("before the commit", during, 1)
	f("after it", after, 1001)
}

// Each operation of a bulk that the disk refuses fails the store, and Apply returns.
func TestBulkOnFullDisk(t *testing.T) {
	t.Parallel()
	kinds := []errorfs.OpKind{errorfs.OpCreate, errorfs.OpLink, errorfs.OpFileWrite, errorfs.OpFileSync}
	for _, kind := range kinds[:testrig.Size(t, len(kinds), 2)] { // 42 MB of files each
		disk := newBrokenDisk(vfs.NewMem(), func(op errorfs.Op) error {
			if op.Kind == kind {
				return syscall.ENOSPC
			}
			return nil
		})
		s, err := store.Open("store", store.Options{FS: disk})
		if err != nil {
			t.Fatal(err)
		}
		apply(t, s, noon, file("first.hcl", declare(block("first", "first.example"))))
		disk.broken.Store(true)
		if _, err := s.Apply(change(manyFiles(0)...), 1, noon, func(*store.Effect) error { return nil }); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%v: %v, want %v", kind, err, store.ErrUnavailable)
		}
		if getProject(t, s, "first") == nil {
			t.Errorf("%v: nothing can be read any more", kind)
		}
		s.Close() // it has failed already
	}
}
