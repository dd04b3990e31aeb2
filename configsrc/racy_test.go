package configsrc_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc"
	"fingerpost/configsrc/atomicfile"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// A countingSink counts the changes, and records which files they declare.
type countingSink struct {
	configsrc.Sink
	mu       sync.Mutex // guards the fields below
	applied  int
	declared map[string]bool
}

func (c *countingSink) Apply(change *catalog.Change) (uint64, error) {
	c.mu.Lock()
	c.applied++
	for i := range change.Files {
		if f := &change.Files[i]; f.Declared != nil {
			c.declared[f.Path] = true
		}
	}
	c.mu.Unlock()
	return c.Sink.Apply(change)
}

func (c *countingSink) count() (applied int, declared map[string]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.applied, c.declared
}

// countingNode is newNode with a sink that counts.
func countingNode(t *testing.T, dir string, r *resolver.Resolver) (*node, *countingSink) {
	t.Helper()
	sink := &countingSink{Sink: r, declared: map[string]bool{}}
	return newNode(t, dir, nodeOptions{resolver: r, sink: sink}), sink
}

func memoryResolver(t *testing.T) *resolver.Resolver {
	t.Helper()
	r := openResolver(t, "")
	t.Cleanup(func() { must(t, r.Close()) })
	return r
}

// TestWriteIsAppliedOnce: a look or a sweep that reads a written file again has nothing to change.
func TestWriteIsAppliedOnce(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.hcl"), project("acme", "acme.example"))
	n, sink := countingNode(t, dir, memoryResolver(t))
	for i := range 5 {
		before, _ := sink.count()
		must(t, rename(n.ctx, n.source, "acme", fmt.Sprint("Name ", i)))
		must(t, n.source.Reload(n.ctx))
		n.until("the stamp can be trusted", func() bool {
			must(t, n.source.StatSweep(n.ctx))
			return !n.source.Racy("a.hcl")
		})
		if after, _ := sink.count(); after != before+1 {
			t.Errorf("write %d: %d changes of what is served", i, after-before)
		}
	}
}

// TestRecheckWaits: files from another decoder revision are decoded again, even if the first reload waits for a
// confirmation.
func TestRecheckWaits(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	dir, r := manyProjects(t, 12), memoryResolver(t)
	n, _ := countingNode(t, dir, r)
	n.stop()
	must(t, r.SetDecoderRevision(0))
	for i := range 6 {
		must(t, os.Remove(filepath.Join(dir, fmt.Sprintf("p%02d.hcl", i))))
	}
	n, sink := countingNode(t, dir, r)
	n.untilState(configsrc.StateHeld)
	info, err := os.Stat(filepath.Join(dir, "p11.hcl"))
	must(t, err)
	n.until("stamps can be trusted", func() bool { return time.Since(info.ModTime()) > 100*time.Millisecond })
	must(t, n.source.StatSweep(n.ctx))
	must(t, n.source.Confirm(n.ctx, catalog.Author{}))
	if _, declared := sink.count(); len(declared) != 6 {
		t.Errorf("decoded anew: %v, want the six that are left", declared)
	}
}

// An unsyncedDisk is as fast as a disk should be.
type unsyncedDisk struct{ atomicfile.OSDisk }

type unsyncedFile struct{ atomicfile.TempFile }

func (unsyncedDisk) SyncFolder(string) error { return nil }
func (unsyncedFile) Sync() error             { return nil }

func (d unsyncedDisk) CreateTemp(dir, pattern string, perm fs.FileMode) (atomicfile.TempFile, error) {
	f, err := d.OSDisk.CreateTemp(dir, pattern, perm)
	if err != nil {
		return nil, err
	}
	return unsyncedFile{f}, nil
}

// unseen writes into a file in a way that no stamp shows. With a name outside of the config folder there is no event
// either.
func unseen(t *testing.T, name, content string) {
	t.Helper()
	info, err := os.Stat(name)
	must(t, err)
	write(t, name, content)
	must(t, os.Chtimes(name, info.ModTime(), info.ModTime()))
}

// TestSweepReadsTheYoung changes a file without an event and without a new stamp, right after the API has written it.
func TestSweepReadsTheYoung(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "link")
	file := write(t, filepath.Join(dir, "a.hcl"), project("acme", "acme.example"))
	n := newNode(t, dir, nodeOptions{disk: unsyncedDisk{}})
	for try := range 20 {
		must(t, rename(n.ctx, n.source, "acme", fmt.Sprintf("Name %02d", try)))
		must(t, os.Link(file, outside))
		want := fmt.Sprintf("Hand %02d", try)
		unseen(t, outside, named("acme", want, "acme.example"))
		must(t, os.Remove(outside))
		n.until("the sweep has read it", func() bool {
			must(t, n.source.StatSweep(n.ctx))
			return n.name("acme.example") == want || !n.source.Racy("a.hcl")
		})
		if n.name("acme.example") == want {
			return
		}
		// The write was slow enough for its stamp to be trusted at once, or a sweep read the file before it was changed.
	}
	t.Error("of 20 changes none was found")
}

// TestSweepReadsTheFuture: an mtime in the future never proves that a file is unchanged.
func TestSweepReadsTheFuture(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "link")
	file := write(t, filepath.Join(dir, "a.hcl"), named("acme", "Name 1", "acme.example"))
	ahead := time.Now().Add(time.Hour)
	must(t, os.Chtimes(file, ahead, ahead))
	must(t, os.Link(file, outside))
	n := newNode(t, dir, nodeOptions{})
	for i := 2; i < 5; i++ {
		want := fmt.Sprint("Name ", i)
		unseen(t, outside, named("acme", want, "acme.example"))
		must(t, n.source.StatSweep(n.ctx))
		if got := n.name("acme.example"); got != want {
			t.Errorf("after a sweep it is %q, want %q", got, want)
		}
	}
}
