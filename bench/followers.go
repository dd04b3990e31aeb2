package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/http"
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
func reach(ctx context.Context, trees []*lightTree, p catalog.Position) error {
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

func (c *clusterBench) lightSeed(i int) string {
	return filepath.Join(c.work, lightName(i)+".nk")
}

// declareLight writes the blocks of the light followers, and their seeds.
func (c *clusterBench) declareLight() error {
	var blocks strings.Builder
	for i := range c.cluster.followers {
		public, seed, err := cluster.NewEdgeKey()
		if err != nil {
			return err
		}
		fmt.Fprintf(&blocks, "edge %q {\n  public_key = %q\n}\n", lightName(i), public)
		if err := os.WriteFile(c.lightSeed(i), []byte(seed), 0o600); err != nil {
			return err
		}
	}
	path := filepath.Join(c.corpus.config, "light.hcl")
	return os.WriteFile(path, []byte(blocks.String()), 0o644)
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
	question := resolvePath + string(c.corpus.appendHost(nil, 0))
	position, err := c.askNode(ctx, http.DefaultClient, c.authority, http.MethodGet, question, "", "")
	if err != nil {
		return err
	}
	now, err := catalog.ParsePosition(position)
	if err != nil {
		return err
	}
	trees := make([]*lightTree, n)
	for i := range trees {
		trees[i] = &lightTree{sums: map[string][sha256.Size]byte{}, moved: make(chan struct{})}
		f := cluster.NewFollower(cluster.FollowerOptions{Cluster: "default", Edge: lightName(i), Replica: trees[i],
			Logger:     slog.New(slog.DiscardHandler),
			Connection: cluster.Connection{URLs: []string{"nats://" + c.nats}, KeyFile: c.lightSeed(i)}})
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
	c.say("%d light followers", n)
	ours := newTurn("fingerpost", func(ctx context.Context, t *turn) error {
		return c.timeEach(ctx, t, func(position string) error {
			p, err := catalog.ParsePosition(position)
			if err != nil {
				return err
			}
			return reach(ctx, trees, p)
		})
	})
	bare := newTurn("bare NATS", func(ctx context.Context, t *turn) error { return c.timeBare(ctx, t, n) })
	if err := c.alternate(ctx, ours, bare); err != nil {
		return err
	}
	name := func(part string) string {
		return fmt.Sprintf("%d followers that keep hashes: write → has come to all, %s", n, part)
	}
	rep.add(ours.against(bare, "p50", name("p50"), "ms"), ours.against(bare, "p99", name("p99"), "ms"))
	return nil
}
