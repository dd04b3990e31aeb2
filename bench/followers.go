package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"fingerpost/configsrc/cluster"
	"fingerpost/resolver/catalog"
)

// A lightTree is the tree of a follower in this process, which keeps the hashes of the files only.
type lightTree struct {
	mu       sync.Mutex // guards what follows
	sums     map[string][sha256.Size]byte
	position catalog.Position
	moved    chan struct{} // closed at the next change
}

func (l *lightTree) Position() catalog.Position {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.position
}

// Tree yields nothing: it is asked at the start, when nothing has come, and for the hourly comparison.
func (*lightTree) Tree(func(path string, content []byte) bool) error { return nil }

func (l *lightTree) ApplyTree(_ context.Context, c catalog.TreeChange) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range c.Put {
		l.sums[f.Path] = sha256.Sum256(f.Bytes)
	}
	for _, path := range c.Removed {
		delete(l.sums, path)
	}
	l.position = c.Position
	close(l.moved)
	l.moved = make(chan struct{})
	return nil
}

// reach waits until the tree has a position.
func (l *lightTree) reach(ctx context.Context, p catalog.Position) error {
	for {
		l.mu.Lock()
		at, moved := l.position, l.moved
		l.mu.Unlock()
		if at.Epoch == p.Epoch && at.Generation >= p.Generation {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("a light follower is at %v, not at %v: %w", at, p, ctx.Err())
		}
	}
}

// reach waits until all trees have a position.
func reach(ctx context.Context, trees []*lightTree, position string) error {
	p, err := catalog.ParsePosition(position)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for _, l := range trees {
		if err := l.reach(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// lightStarts is how many light followers start at the same time: each holds its first tree in memory until it is
// whole.
const lightStarts = 16

func lightName(i int) string { return fmt.Sprintf("light%04d", i) }

// declareLight writes the blocks of the light followers, and their seeds.
func (c *clusterBench) declareLight() error {
	var blocks strings.Builder
	for i := range c.cluster.followers {
		public, seed, err := cluster.NewEdgeKey()
		if err != nil {
			return err
		}
		fmt.Fprintf(&blocks, "edge %q {\n  public_key = %q\n}\n", lightName(i), public)
		if err := os.WriteFile(c.seed(lightName(i)), []byte(seed), 0o600); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(c.corpus.config, "light.hcl"), []byte(blocks.String()), 0o644)
}

// light times the way of writes to many followers that only keep hashes, and that of a message to as many subscribers
// of a bare NATS.
func (c *clusterBench) light(ctx context.Context, rep *report) error {
	n := c.cluster.followers
	if n == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	now, err := c.write()
	if err != nil {
		return err
	}
	trees := make([]*lightTree, n)
	for i := range trees {
		trees[i] = &lightTree{sums: map[string][sha256.Size]byte{}, moved: make(chan struct{})}
		f := cluster.NewFollower(cluster.FollowerOptions{Cluster: "default", Edge: lightName(i), Replica: trees[i],
			Logger:     slog.New(slog.DiscardHandler),
			Connection: cluster.Connection{URLs: []string{"nats://" + c.nats}, KeyFile: c.seed(lightName(i))}})
		if err := f.Open(); err != nil {
			return fmt.Errorf("light follower %d: %w", i, err)
		}
		running.Go(func() { _ = f.Run(ctx) })
		if i%lightStarts == lightStarts-1 {
			if err := reach(ctx, trees[i+1-lightStarts:i+1], now); err != nil {
				return err
			}
		}
	}
	name := fmt.Sprintf("%d followers that keep hashes: write → has come to all", n)
	p50, p99, err := c.wayOfWrites(ctx, name, n, func(position string) error { return reach(ctx, trees, position) })
	rep.add(p50, p99)
	return err
}
