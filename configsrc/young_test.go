package configsrc_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"fingerpost/configsrc"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// A countingSink counts the changes.
type countingSink struct {
	configsrc.Sink
	applied atomic.Int64
}

func (c *countingSink) Apply(change *catalog.Change) (uint64, error) {
	c.applied.Add(1)
	return c.Sink.Apply(change)
}

// TestWriteIsAppliedOnce: the look that answers the events of a write has nothing to do, nor has the sweep that makes
// sure of it.
func TestWriteIsAppliedOnce(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.hcl"), project("acme", "acme.example"))
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	r, err := resolver.Open(resolver.Options{CacheBytes: 1 << 20, Logger: log})
	must(t, err)
	sink := &countingSink{Sink: r}
	n := &node{T: t, dir: dir, resolver: r}
	n.source = configsrc.New(configsrc.Options{Dir: dir, Sink: sink, Logger: log, MaxDelete: 0.3})
	n.ctx, n.cancel = context.WithCancel(context.Background())
	t.Cleanup(func() {
		n.cancel()
		n.running.Wait()
		must(t, r.Close())
	})
	n.load()
	n.run()
	for i := range 5 {
		loaded := sink.applied.Load()
		must(t, rename(n.ctx, n.source, "acme", fmt.Sprint("Name ", i)))
		n.untilLooked()
		n.until("the stamp can be trusted", func() bool {
			must(t, n.source.StatSweep(n.ctx))
			return !n.source.Young("a.hcl")
		})
		if got := sink.applied.Load() - loaded; got != 1 {
			t.Errorf("write %d: %d changes of what is served", i, got)
		}
	}
}

// TestSweepReadsTheYoung changes a file in a way that no event tells and no stamp shows, right after the API has written it.
func TestSweepReadsTheYoung(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "link")
	file := write(t, filepath.Join(dir, "a.hcl"), project("acme", "acme.example"))
	n := newNode(t, dir, nodeOptions{})
	for try := 0; ; try++ {
		must(t, rename(n.ctx, n.source, "acme", fmt.Sprintf("Name %02d", try)))
		must(t, os.Link(file, outside))
		info, err := os.Stat(file)
		must(t, err)
		want := fmt.Sprintf("Hand %02d", try)
		write(t, outside, named("acme", want, "acme.example"))
		must(t, os.Chtimes(outside, info.ModTime(), info.ModTime()))
		must(t, os.Remove(outside))
		if !n.source.Young("a.hcl") && n.name("acme.example") != want && try < 5 {
			continue // so slow that a sweep has come in between
		}
		n.until("the sweep finds "+want, func() bool {
			must(t, n.source.StatSweep(n.ctx))
			return n.name("acme.example") == want
		})
		return
	}
}
