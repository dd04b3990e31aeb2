package store

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// A slowMerge is a disk on which merges block until go is closed; flushes run.
type slowMerge struct {
	vfs.FS
	begun atomic.Int64 // tables of merges
	on    chan struct{}
}

func (d *slowMerge) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if c == "pebble-compaction" {
		d.begun.Add(1)
		<-d.on
	}
	return d.FS.Create(name, c)
}

// TestMergeFallsBehind floods a store whose merge never ends: writes must not wait for it, and the merge must not be
// paced once many flushed tables wait for it.
func TestMergeFallsBehind(t *testing.T) {
	t.Parallel()
	disk, paced := &slowMerge{FS: vfs.NewMem(), on: make(chan struct{})}, new(atomic.Bool)
	paced.Store(true)
	s, err := Open("store", Options{FS: disk, Paced: paced})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	write := func(n int) {
		t.Helper()
		p := catalog.ProjectConfig{Project: catalog.Project{Slug: "acme", Name: fmt.Sprint("Acme ", n), Status: catalog.StatusActive}}
		p.Project.UUID = catalog.DeriveProjectUUID("acme")
		p.Project.ID = catalog.DeriveID(catalog.KindProject, p.Project.UUID)
		c := &catalog.Change{Files: []catalog.FileChange{{
			Path: "acme.hcl", Declared: &catalog.Declared{Projects: []catalog.ProjectConfig{p}}, Row: &catalog.FileRow{}, Bytes: []byte("x"),
		}}}
		if _, err := s.Apply(c, 1, time.Now(), func(*Effect) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if err := s.db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if !s.atEase() {
		t.Fatal("a store at rest is in a hurry")
	}
	for n := range 3 * hurryTables { // at Pebble's default bound of 12 one of these would block for ever
		write(n)
	}
	if s.atEase() {
		t.Errorf("with %d flushed tables to be merged, the merge takes its time", s.db.Metrics().Levels[0].TablesCount)
	}
	if disk.begun.Load() == 0 {
		t.Fatal("no merge has begun: the test shows nothing")
	}
	close(disk.on)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for late := time.After(testrig.Patience); !s.atEase(); {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%d flushed tables, and the store counts %d: it stays in a hurry", s.db.Metrics().Levels[0].TablesCount, s.backlog.flushed.Load())
		}
	}
}

// TestBacklogAfterRestart opens a store that was closed with flushed tables: they count from the start.
func TestBacklogAfterRestart(t *testing.T) {
	t.Parallel()
	disk := vfs.NewMem()
	s, err := Open("store", Options{FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		if err := s.db.Set([]byte("~mark"), fmt.Append(nil, n), pebble.NoSync); err != nil {
			t.Fatal(err)
		}
		if err := s.db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open("store", Options{FS: disk}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if want, got := s.db.Metrics().Levels[0].TablesCount, s.backlog.flushed.Load(); want == 0 || got != want {
		t.Errorf("%d flushed tables are counted, there are %d", got, want)
	}
}
