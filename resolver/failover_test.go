package resolver_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/store"
)

// fast makes the watch loop check often.
var fast = resolver.DiskOptions{CheckEvery: time.Millisecond, RetryEvery: time.Millisecond}

// A gate is a probe of the disk that fails until it is opened.
type gate struct{ open atomic.Bool }

func (g *gate) probe(dir string) error {
	if !g.open.Load() {
		return fmt.Errorf("%w: the test says so", store.ErrUnavailable)
	}
	return store.Probe(dir)
}

// lines collects the log from level Info on.
type lines struct{ testrig.Log }

func (l *lines) all() []string {
	return strings.Split(strings.TrimSuffix(l.String(), "\n"), "\n")
}

func degraded(r *resolver.Resolver) func() bool {
	return func() bool { _, bad := r.Degraded(); return bad }
}

func healthy(r *resolver.Resolver) func() bool {
	return func() bool { _, bad := r.Degraded(); return !bad && r.Writable() }
}

// remove takes the directory of a running resolver away at once: os.RemoveAll would meet the files that it still adds.
func remove(t *testing.T, dir string) {
	t.Helper()
	if err := os.Rename(dir, dir+"-removed"); err != nil {
		t.Fatal(err)
	}
}

func TestDirectoryRemoved(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	g, log := new(gate), new(lines)
	var clock atomic.Int64
	r, err := resolver.Open(resolver.Options{
		DataDir: dir, CacheBytes: testCacheBytes, Logger: slog.New(slog.NewTextHandler(log, nil)),
		Now:  func() time.Time { return noon.Add(time.Duration(clock.Add(1)) * time.Hour) },
		Disk: resolver.DiskOptions{CheckEvery: fast.CheckEvery, RetryEvery: fast.RetryEvery, Probe: g.probe},
	})
	if err != nil {
		t.Fatal(err)
	}
	apply(t, r, file("a.hcl", block("a", "a.example", "cold.example")))
	created := resolve(t, r, "a.example", resolver.Nested).Data
	remove(t, dir)
	testrig.Eventually(t, "the loss is noticed", degraded(r))
	if reason, _ := r.Degraded(); !strings.Contains(reason, "removed or replaced") || strings.Contains(reason, dir) || r.Writable() {
		t.Errorf("reason %q", reason)
	}
	if resolve(t, r, "cold.example", resolver.Nested).Slug != "a" {
		t.Error("what was not cached is gone")
	}
	if n := apply(t, r, file("b.hcl", block("b", "b.example"))); n != 2 || r.Generation() != 2 {
		t.Errorf("generation %d, want 2", n)
	}
	if resolve(t, r, "b.example", resolver.Nested).Slug != "b" {
		t.Error("a change in memory is not seen")
	}
	g.open.Store(true)
	testrig.Eventually(t, "the store is back", healthy(r))
	for name, slug := range map[string]string{"a.example": "a", "b.example": "b", "cold.example": "a"} {
		if resolve(t, r, name, resolver.Nested).Slug != slug {
			t.Errorf("%s after the way back", name)
		}
	}
	if got := resolve(t, r, "a.example", resolver.Nested).Data; string(got) != string(created) {
		t.Errorf("%s\nbefore\n%s", got, created)
	}
	if n := apply(t, r, file("c.hcl", block("c", "c.example"))); n != 3 {
		t.Errorf("generation %d, want 3", n)
	}
	if l := log.all(); len(l) != 2 || !strings.Contains(l[0], "level=ERROR") || !strings.Contains(l[1], "is back") {
		t.Errorf("one line for each change of state, got:\n%s", strings.Join(l, "\n"))
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, resolver.Options{DataDir: dir})
	for _, slug := range []string{"a", "b", "c"} {
		if resolve(t, again, slug+".example", resolver.Nested).Slug != slug {
			t.Errorf("the directory does not hold %s", slug)
		}
	}
}

func TestStartWithoutADisk(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	g := new(gate)
	r := open(t, resolver.Options{DataDir: dir, Disk: resolver.DiskOptions{
		CheckEvery: fast.CheckEvery, RetryEvery: fast.RetryEvery, Probe: g.probe,
		Store: func(dir string, o store.Options) (*store.Store, error) {
			if !g.open.Load() {
				return nil, fmt.Errorf("open the store: %w: no space left", store.ErrUnavailable)
			}
			return store.Open(dir, o)
		},
	}})
	if reason, bad := r.Degraded(); !bad || !strings.Contains(reason, "no space left") || r.Writable() {
		t.Errorf("reason %q", reason)
	}
	apply(t, r, file("a.hcl", block("a", "a.example")))
	if resolve(t, r, "a.example", resolver.Nested).Slug != "a" {
		t.Error("nothing is served")
	}
	g.open.Store(true)
	testrig.Eventually(t, "the store is there", healthy(r))
	if resolve(t, r, "a.example", resolver.Nested).Slug != "a" {
		t.Error("the way back has lost what memory had")
	}
}

func TestStartIsStopped(t *testing.T) {
	t.Parallel()
	for _, want := range []error{store.ErrLocked, store.ErrNewer} {
		_, err := resolver.Open(resolver.Options{DataDir: t.TempDir(), Logger: quiet, Disk: resolver.DiskOptions{
			Store: func(string, store.Options) (*store.Store, error) { return nil, want },
		}})
		if !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
}

func TestStartOnADamagedStore(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	r, err := resolver.Open(resolver.Options{DataDir: dir, CacheBytes: testCacheBytes, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	apply(t, r, file("a.hcl", block("a", "a.example")))
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	manifests, err := filepath.Glob(filepath.Join(dir, "MANIFEST-*"))
	if err != nil || len(manifests) == 0 {
		t.Fatal(manifests, err)
	}
	for _, m := range manifests {
		if err := os.Remove(m); err != nil {
			t.Fatal(err)
		}
	}
	r = open(t, resolver.Options{DataDir: dir})
	if reason, bad := r.Degraded(); bad || !r.Writable() {
		t.Errorf("degraded: %s", reason)
	}
	if aside, err := filepath.Glob(dir + ".damaged-*"); err != nil || len(aside) != 1 {
		t.Errorf("moved aside: %v, %v", aside, err)
	}
	if a := resolve(t, r, "a.example", resolver.Nested); a.Code != catalog.CodeNotFound {
		t.Errorf("out of a new store came %s", a.Data)
	}
	apply(t, r, file("a.hcl", block("a", "a.example")))
	if resolve(t, r, "a.example", resolver.Nested).Slug != "a" {
		t.Error("the new store takes nothing")
	}
}

// manyFiles declares enough for a table with many blocks.
func manyFiles() []catalog.FileChange {
	var files []catalog.FileChange
	for i := range 3000 {
		files = append(files, file(fmt.Sprintf("p%d.hcl", i), block(fmt.Sprintf("p%d", i), fmt.Sprintf("p%d.example", i))))
	}
	return files
}

// TestDamageWhileRunning: data that turns out to be damaged is not copied. The files fill a new store, and until then
// the old one answers as far as it can.
func TestDamageWhileRunning(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	files := manyFiles()
	for range 2 { // the second start turns the log into a table
		r, err := resolver.Open(resolver.Options{DataDir: dir, CacheBytes: testCacheBytes, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		apply(t, r, files...)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var r *resolver.Resolver
	rebuilding, goOn := make(chan struct{}), make(chan struct{})
	var calls atomic.Int64
	r = open(t, resolver.Options{DataDir: dir, Disk: fast, Rebuild: func(context.Context) error {
		if calls.Add(1) == 1 {
			return errors.New("not yet")
		}
		close(rebuilding)
		<-goOn
		if err := r.Files(func(path string, _ *catalog.FileRow) bool {
			t.Errorf("%s is still in the file table", path)
			return false
		}); err != nil {
			return err
		}
		_, err := r.Apply(&catalog.Change{Files: files})
		return err
	}})
	before := r.Generation()
	cursor, _ := r.Events().Newest()
	resolve(t, r, "p1.example", resolver.Nested)
	r.Settle()
	testrig.Eventually(t, "a damaged block is read", func() bool {
		corruptTables(t, dir) // again, because a compaction has written new ones
		for i := range 3000 {
			if _, err := r.Resolve(fmt.Appendf(nil, "p%d.example", i), resolver.Nested); err != nil {
				if code(err) != catalog.CodeUnavailable {
					t.Fatal(err)
				}
				return true
			}
		}
		return false
	})
	<-rebuilding
	if reason, bad := r.Degraded(); !bad || !strings.Contains(reason, "damaged") {
		t.Errorf("reason %q", reason)
	}
	if a := resolve(t, r, "p1.example", resolver.Nested); a.Slug != "p1" {
		t.Error("a cached answer is gone while the new store is filled")
	}
	if got := next(&cursor); got != "" {
		t.Errorf("while the new store is filled: %s", got)
	}
	close(goOn)
	testrig.Eventually(t, "the store on disk is back", healthy(r))
	if got := next(&cursor); got != "\"\"\n\"reset\"" {
		t.Errorf("the new store tells %s", got)
	}
	for i := range 3000 {
		if slug := fmt.Sprintf("p%d", i); resolve(t, r, slug+".example", resolver.Nested).Slug != slug {
			t.Fatalf("%s is not served", slug)
		}
	}
	if r.Generation() <= before {
		t.Errorf("generation %d after %d", r.Generation(), before)
	}
	if aside, err := filepath.Glob(dir + ".damaged-*"); err != nil || len(aside) != 1 {
		t.Errorf("moved aside: %v, %v", aside, err)
	}
}

// corruptTables flips bits in the blocks of all tables, except at their ends, which are read when a table is opened.
func corruptTables(t *testing.T, dir string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if errors.Is(err, os.ErrNotExist) {
			continue // a compaction has replaced it
		}
		if err != nil {
			t.Fatal(err)
		}
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		for at := int64(1000); at < info.Size()*3/4; at += 1500 {
			if _, err := f.WriteAt([]byte{0x55, 0xaa}, at); err != nil {
				t.Fatal(err)
			}
		}
		f.Close()
	}
}

// TestDiskFull fills a real disk while changes are applied, and recovers.
func TestDiskFull(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	mount := t.TempDir()
	if err := syscall.Mount("tmpfs", mount, "tmpfs", 0, "size=12m"); err != nil {
		t.Skip("no tmpfs for the test:", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(mount, syscall.MNT_DETACH) })
	dir, log := filepath.Join(mount, "data"), new(lines)
	r, err := resolver.Open(resolver.Options{
		DataDir: dir, CacheBytes: testCacheBytes, Disk: fast, Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	// Ballast next to the store keeps it from recovering until the disk grows.
	if err := os.WriteFile(filepath.Join(mount, "ballast"), make([]byte, 8<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	noise := make([]byte, 256<<10)
	cursor, _ := r.Events().Newest()
	unsure := 0
	for n := range 60 {
		for i := range noise {
			noise[i] = byte(i*n) ^ byte(i>>8*7) ^ byte(i>>3)
		}
		f := file(fmt.Sprintf("p%d.hcl", n), block(fmt.Sprintf("p%d", n), fmt.Sprintf("p%d.example", n)))
		f.Bytes = bytes.Clone(noise)
		if got := apply(t, r, f); got != uint64(n)+1 {
			t.Fatalf("generation %d, want %d", got, n+1)
		}
		if slug := fmt.Sprintf("p%d", n); resolve(t, r, slug+".example", resolver.Nested).Slug != slug {
			t.Fatal(slug, "is not served")
		}
		// The change that hits the full disk may be committed on disk, in memory, or on both.
		told := fmt.Sprintf("project.changed p%d: p%d.example", n, n)
		switch got := next(&cursor); got {
		case told:
		case "\"\"\n\"reset\"", "\"\"\n\"reset\"\n" + told:
			unsure++
		default:
			t.Fatalf("change %d tells %q", n, got)
		}
	}
	if unsure > 1 {
		t.Errorf("%d changes could not be told", unsure)
	}
	testrig.Eventually(t, "the disk is full", degraded(r))
	if reason, _ := r.Degraded(); !strings.Contains(reason, "no space left") {
		t.Errorf("reason %q", reason)
	}
	if err := syscall.Mount("tmpfs", mount, "tmpfs", syscall.MS_REMOUNT, "size=400m"); err != nil {
		t.Fatal(err)
	}
	testrig.Eventually(t, "the store is back", healthy(r))
	check := func(r *resolver.Resolver) {
		t.Helper()
		for n := range 60 {
			slug := fmt.Sprintf("p%d", n)
			if a := resolve(t, r, slug+".example", resolver.Nested); a.Slug != slug {
				t.Fatalf("%s.example is answered by %q: %q", slug, a.Slug, a.Code)
			}
		}
	}
	check(r)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(log.all()); n != 2 {
		t.Errorf("%d lines, want one for each change of state:\n%s", n, strings.Join(log.all(), "\n"))
	}
	check(open(t, resolver.Options{DataDir: dir}))
}
