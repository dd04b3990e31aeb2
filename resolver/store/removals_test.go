package store_test

import (
	"errors"
	"syscall"
	"testing"

	"fingerpost/resolver/store"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// TestRemovalsAreDurable: the note and the changes applied before it survive a power cut right after the call.
func TestRemovalsAreDurable(t *testing.T) {
	t.Parallel()
	mem := vfs.NewCrashableMem()
	s := open(t, "data", store.Options{FS: mem})
	crashed := func() (note string, projects int) {
		t.Helper()
		s := open(t, "data", store.Options{FS: mem.CrashClone(vfs.CrashCloneCfg{})})
		b, err := s.Removals()
		if err != nil {
			t.Fatal(err)
		}
		return string(b), s.Counts().Projects
	}
	note := func(text string) {
		t.Helper()
		if err := s.NoteRemovals([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	check := func(want string, projects int) {
		t.Helper()
		if got, n := crashed(); got != want || n != projects {
			t.Errorf("after a crash: note %q, %d projects; want %q, %d", got, n, want, projects)
		}
	}
	note("")
	apply(t, s, noon, file("a.hcl", declare(block("a", "a.example"))))
	check("", 0) // a change alone is not synced
	note("first")
	check("first", 1)
	apply(t, s, noon, gone("a.hcl"))
	note("")
	check("", 0)
}

func TestRemovalsOnFailedDisk(t *testing.T) {
	t.Parallel()
	disk := newBrokenDisk(vfs.NewMem(), failKinds(syscall.EIO, errorfs.OpFileSync, errorfs.OpFileSyncData))
	s := open(t, "data", store.Options{FS: disk})
	disk.broken.Store(true)
	for range 2 {
		if err := s.NoteRemovals([]byte("note")); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%v, want %v", err, store.ErrUnavailable)
		}
	}
}
