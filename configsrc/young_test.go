package configsrc_test

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"fingerpost/configsrc"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// A countingSink counts the changes, and notes which files they declare.
type countingSink struct {
	configsrc.Sink
	mu       sync.Mutex // guards what follows
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
	sink := &countingSink{Sink: r, declared: map[string]bool{}}
	n := &node{T: t, dir: dir, resolver: r}
	n.source = configsrc.New(configsrc.Options{Dir: dir, Sink: sink, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), MaxDelete: 0.3})
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.stop = func() {
		n.cancel()
		n.running.Wait()
	}
	t.Cleanup(n.stop)
	n.load()
	n.run()
	return n, sink
}

func memoryResolver(t *testing.T) *resolver.Resolver {
	r, err := resolver.Open(resolver.Options{CacheBytes: 1 << 20, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	must(t, err)
	t.Cleanup(func() { must(t, r.Close()) })
	return r
}

// TestWriteIsAppliedOnce: whoever reads again what a write has written has nothing to change, be it a look or a sweep.
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
			return !n.source.Young("a.hcl")
		})
		if after, _ := sink.count(); after != before+1 {
			t.Errorf("write %d: %d changes of what is served", i, after-before)
		}
	}
}

// TestRecheckWaits: files that another decoder has decoded are decoded anew, also where what is to be done first waits for
// somebody to confirm it.
func TestRecheckWaits(t *testing.T) {
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
	must(t, n.source.Confirm(n.ctx))
	if _, declared := sink.count(); len(declared) != 6 {
		t.Errorf("decoded anew: %v, want the six that are left", declared)
	}
}

// An unsyncedDisk is as fast as a disk should be.
type unsyncedDisk struct{ configsrc.OSDisk }

type unsyncedFile struct{ configsrc.TempFile }

func (unsyncedDisk) SyncFolder(string) error { return nil }
func (unsyncedFile) Sync() error             { return nil }

func (d unsyncedDisk) CreateTemp(dir, pattern string, perm fs.FileMode) (configsrc.TempFile, error) {
	f, err := d.OSDisk.CreateTemp(dir, pattern, perm)
	if err != nil {
		return nil, err
	}
	return unsyncedFile{f}, nil
}

// TestSweepReadsTheYoung changes a file in a way that no event tells and no stamp shows, right after the API has written it.
func TestSweepReadsTheYoung(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "link")
	file := write(t, filepath.Join(dir, "a.hcl"), project("acme", "acme.example"))
	n := newNode(t, dir, nodeOptions{disk: unsyncedDisk{}})
	for try := range 20 {
		must(t, rename(n.ctx, n.source, "acme", fmt.Sprintf("Name %02d", try)))
		must(t, os.Link(file, outside))
		info, err := os.Stat(file)
		must(t, err)
		want := fmt.Sprintf("Hand %02d", try)
		write(t, outside, named("acme", want, "acme.example"))
		must(t, os.Chtimes(outside, info.ModTime(), info.ModTime()))
		must(t, os.Remove(outside))
		n.until("the sweep has read it", func() bool {
			must(t, n.source.StatSweep(n.ctx))
			return n.name("acme.example") == want || !n.source.Young("a.hcl")
		})
		if n.name("acme.example") == want {
			return
		}
		// The write took so long that its stamp could be trusted at once, or a sweep had read the file before it was changed.
	}
	t.Error("of 20 changes none was found")
}
