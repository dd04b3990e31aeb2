package store_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/store"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// A brokenDisk fails chosen operations from the moment break is called, and counts those that change something.
type brokenDisk struct {
	vfs.FS
	broken  atomic.Bool
	close   bool         // Close fails, which errorfs never does
	changes atomic.Int64 // operations that would change the directory since the disk broke
}

func newBrokenDisk(base vfs.FS, fails func(errorfs.Op) error) *brokenDisk {
	d := new(brokenDisk)
	d.FS = errorfs.Wrap(base, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if !d.broken.Load() {
			return nil
		}
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			d.changes.Add(1)
		}
		return fails(op)
	}))
	return d
}

func (d *brokenDisk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.Create(name, c)
	return closeFails{f, d}, err
}

type closeFails struct {
	vfs.File
	disk *brokenDisk
}

func (f closeFails) Close() error {
	if f.disk.close && f.disk.broken.Load() {
		return errors.Join(syscall.EDQUOT, f.File.Close())
	}
	return f.File.Close()
}

func failKinds(err error, kinds ...errorfs.OpKind) func(errorfs.Op) error {
	return func(op errorfs.Op) error {
		for _, k := range kinds {
			if op.Kind == k {
				return &os.PathError{Op: "write", Path: op.Path, Err: err}
			}
		}
		return nil
	}
}

func failWrites(err error) func(errorfs.Op) error {
	return func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			return &os.PathError{Op: "write", Path: op.Path, Err: err}
		}
		return nil
	}
}

// bulky returns a file change that fills a sixteenth of a memtable with incompressible bytes.
func bulky(n int) catalog.FileChange {
	p := block(fmt.Sprintf("bulk%d", n), fmt.Sprintf("bulk%d.example", n))
	f := file(fmt.Sprintf("bulk%d.hcl", n), declare(p))
	f.Bytes = make([]byte, 1<<20)
	random := rand.NewChaCha8([32]byte{byte(n)})
	random.Read(f.Bytes)
	return f
}

func waitFailed(t *testing.T, s *store.Store) {
	t.Helper()
	select {
	case <-s.Failed():
	case <-time.After(testrig.Patience):
		t.Fatal("the store has not failed")
	}
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

func TestFailingDisk(t *testing.T) {
	for name, fails := range map[string]func(errorfs.Op) error{
		"full":           failWrites(syscall.ENOSPC),
		"read-only":      failWrites(syscall.EROFS),
		"I/O error":      failWrites(syscall.EIO),
		"create":         failKinds(syscall.ENOSPC, errorfs.OpCreate, errorfs.OpReuseForWrite),
		"write":          failKinds(syscall.EIO, errorfs.OpFileWrite),
		"sync":           failKinds(syscall.EIO, errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo),
		"close":          failKinds(nil),
		"rename, remove": failKinds(syscall.EROFS, errorfs.OpReuseForWrite, errorfs.OpRename, errorfs.OpRemove),
		"folder gone":    failKinds(syscall.ENOENT, errorfs.OpCreate, errorfs.OpReuseForWrite, errorfs.OpRename),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disk := newBrokenDisk(vfs.NewMem(), fails)
			disk.close = name == "close"
			s := open(t, "data", store.Options{FS: disk})
			apply(t, s, noon, file("a.hcl", declare(block("a", "a.example"))))
			disk.broken.Store(true)
			fill(t, s)
			waitFailed(t, s)

			at := disk.changes.Load()
			within(t, "Apply", func() {
				if _, err := s.Apply(change(file("b.hcl", declare(block("b", "b.example")))), 1, noon, func(*store.Effect) error { return nil }); !errors.Is(err, store.ErrUnavailable) {
					t.Errorf("Apply: %v, want ErrUnavailable", err)
				}
			})
			within(t, "reading", func() {
				if getDomain(t, s, "a.example") == nil || getProject(t, s, "a") == nil || len(dump(t, s)) < 3 {
					t.Error("the failed store has lost what it had")
				}
			})
			if err := s.Err(); !errors.Is(err, store.ErrUnavailable) || strings.Contains(err.Error(), "data/") {
				t.Errorf("Err: %v, want ErrUnavailable without a path", err)
			}
			within(t, "Close", func() { s.Close() })
			// Operations already in the kernel when the barrier tripped may still land: one for each of Pebble's few writers.
			if n := disk.changes.Load() - at; n > 8 {
				t.Errorf("%d operations after the failure", n)
			}
		})
	}
}

// fill applies changes until the store refuses them, after a few memtables at most.
func fill(t *testing.T, s *store.Store) {
	t.Helper()
	within(t, "filling the store", func() {
		for n := range 200 {
			if _, err := s.Apply(change(bulky(n)), 1, noon, func(*store.Effect) error { return nil }); err != nil {
				if !errors.Is(err, store.ErrUnavailable) {
					t.Errorf("Apply: %v", err)
				}
				return
			}
		}
		t.Error("200 MiB went into a broken disk")
	})
}

// TestWithoutTheFence shows that the faults of TestFailingDisk would end the process: Pebble calls Fatalf, or retries a
// failed flush in a loop.
func TestWithoutTheFence(t *testing.T) {
	t.Parallel()
	disk := newBrokenDisk(vfs.NewMem(), failWrites(syscall.ENOSPC))
	fatal := make(chan string, 1)
	db, err := pebble.Open("data", &pebble.Options{FS: disk, Logger: fatalLogger(fatal), FormatMajorVersion: pebble.FormatNewest})
	if err != nil {
		t.Fatal(err)
	}
	disk.broken.Store(true)
	go func() {
		_ = db.Set([]byte("key"), []byte("value"), pebble.Sync) // a larger write ends the test binary in rotateWAL
	}()
	select {
	case msg := <-fatal:
		if !strings.Contains(msg, "no space left") {
			t.Errorf("Fatalf: %s", msg)
		}
	case <-time.After(testrig.Patience):
		t.Fatal("Pebble did not call Fatalf: the fence has nothing to do")
	}
}

// fatalLogger reports Fatalf and parks the goroutine, as if the process had ended.
type fatalLogger chan string

func (l fatalLogger) Infof(string, ...any)  {}
func (l fatalLogger) Errorf(string, ...any) {}
func (l fatalLogger) Fatalf(format string, args ...any) {
	select {
	case l <- fmt.Sprintf(format, args...):
	default:
	}
	select {}
}

func TestOpenOnABrokenDisk(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem()
	s := open(t, "data", store.Options{FS: mem})
	apply(t, s, noon, file("a.hcl", declare(block("a", "a.example"))))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for name, fails := range map[string]func(errorfs.Op) error{
		"full":      failWrites(syscall.ENOSPC),
		"read-only": failWrites(syscall.EROFS),
		"I/O error": func(op errorfs.Op) error { return syscall.EIO },
		"only sync": failKinds(syscall.EIO, errorfs.OpFileSync, errorfs.OpFileSyncData),
	} {
		disk := newBrokenDisk(mem, fails)
		disk.broken.Store(true)
		within(t, name+": Open", func() {
			if _, err := store.Open("data", store.Options{FS: disk}); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("%s: %v, want ErrUnavailable", name, err)
			}
		})
	}
	s = open(t, "data", store.Options{FS: mem})
	if getDomain(t, s, "a.example") == nil {
		t.Error("the attempts have cost data")
	}
}

func TestDirectoryGone(t *testing.T) {
	t.Parallel()
	for name, strike := range map[string]func(dir string) error{
		"removed":  os.RemoveAll,
		"emptied":  func(dir string) error { return os.Remove(filepath.Join(dir, "LOCK")) },
		"replaced": func(dir string) error { return errors.Join(os.Rename(dir, dir+".old"), os.Mkdir(dir, 0o755)) },
		"a file":   func(dir string) error { return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o644)) },
	} {
		dir := newDir(t)
		s := open(t, dir, store.Options{})
		apply(t, s, noon, file("a.hcl", declare(block("a", "a.example"))))
		if err := s.Check(); err != nil {
			t.Fatalf("%s: before: %v", name, err)
		}
		if err := strike(dir); err != nil {
			t.Fatal(err)
		}
		if err := s.Check(); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: Check: %v", name, err)
		}
		waitFailed(t, s)
		if getDomain(t, s, "a.example") == nil {
			t.Errorf("%s: the store in memory is gone with the directory", name)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: Close: %v", name, err)
		}
	}
}

// TestReopenAfterFailure reopens a directory in the process whose first instance hangs in the write barrier.
func TestReopenAfterFailure(t *testing.T) {
	t.Parallel()
	testrig.Slow(t)
	dir := newDir(t)
	disk := newBrokenDisk(vfs.Default, failWrites(syscall.ENOSPC))
	s := open(t, dir, store.Options{FS: disk})
	apply(t, s, noon, file("a.hcl", declare(block("a", "a.example"))))
	disk.broken.Store(true)
	fill(t, s)
	if _, err := store.Open(dir, store.Options{}); !errors.Is(err, store.ErrLocked) {
		t.Errorf("opened beside the failed instance: %v", err)
	}
	s.Close()
	again := openFree(t, dir)
	if again.Err() != nil {
		t.Error(again.Err())
	}
	disk.broken.Store(false) // the disk works again, but the old instance must stay away
	at := disk.changes.Load()
	for n := range 20 {
		apply(t, again, noon, bulky(n))
	}
	if disk.changes.Load() != at {
		t.Error("the old instance has written")
	}
}

// openFree opens a directory as soon as the failed instance has released it.
func openFree(t *testing.T, dir string) (s *store.Store) {
	t.Helper()
	within(t, "the lock", func() {
		for err := error(store.ErrLocked); errors.Is(err, store.ErrLocked); {
			s, err = store.Open(dir, store.Options{})
		}
	})
	if s == nil {
		t.Fatal("not opened")
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// TestFullTmpfs is TestFailingDisk on a real full disk, where the machine allows one.
func TestFullTmpfs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=12m"); err != nil {
		t.Skip("no tmpfs for the test:", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	data := filepath.Join(dir, "data")
	s := open(t, data, store.Options{})
	apply(t, s, noon, file("a.hcl", declare(block("a", "a.example"))))
	fill(t, s)
	waitFailed(t, s)
	if getDomain(t, s, "a.example") == nil || !errors.Is(s.Err(), syscall.ENOSPC) {
		t.Errorf("after ENOSPC: %v", s.Err())
	}
	s.Close()
	within(t, "Open on a full disk", func() {
		for err := error(store.ErrLocked); errors.Is(err, store.ErrLocked); {
			if _, err = store.Open(data, store.Options{}); err == nil {
				t.Log("it opens: Pebble found a few blocks")
			}
		}
	})
	if err := store.Probe(data); !errors.Is(err, store.ErrUnavailable) || strings.Contains(err.Error(), dir) {
		t.Errorf("Probe: %v, want ErrUnavailable without a path", err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=200m"); err != nil {
		t.Fatal(err)
	}
	if err := store.Probe(data); err != nil {
		t.Errorf("Probe with room: %v", err)
	}
}

// TestReadOnlyMount: the lock file cannot be opened for writing, which is the disk's fault and no lock.
func TestReadOnlyMount(t *testing.T) { // not parallel: a process that another test starts holds files open for a moment
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=50m"); err != nil {
		t.Skip("no tmpfs for the test:", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	data := filepath.Join(dir, "data")
	s := open(t, data, store.Options{})
	apply(t, s, noon, file("a.hcl", declare(block("a", "a.example"))))
	s.Close()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{data, filepath.Join(dir, "new")} {
		if _, err := store.Open(name, store.Options{}); !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrLocked) {
			t.Errorf("%s: %v, want ErrUnavailable", name, err)
		}
	}
	if err := store.Probe(data); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Probe: %v", err)
	}
}
