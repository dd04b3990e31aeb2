package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// writeWithGit compares durable writes of a server with --git with those of one without, and a commit with git
// commit-tree. plain is the server without git, c its corpus.
func (b *bench) writeWithGit(ctx context.Context, plain *server, c *corpus, rep *report) error {
	withGit, err := b.openEdited("write-git-")
	if err != nil {
		return err
	}
	git := func(args ...string) error {
		out, err := exec.CommandContext(ctx, "git", append([]string{"-C", filepath.Dir(withGit.config), "-c",
			"user.name=bench", "-c", "user.email=bench@bench.example"}, args...)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("git %s: %w\n%s", args[0], err, out)
		}
		return nil
	}
	for _, args := range []string{"init -q", "add projects.d", "commit -q --allow-empty -m bench", "repack -a -d -q"} {
		if err := git(strings.Fields(args)...); err != nil {
			return err
		}
	}
	own := ownFiles(c.Projects, b.connections)
	without := served(plain, c, own)
	without.name = "without --git"
	// start serves the corpus, and returns a side whose time ends when all of its writes are committed.
	start := func(flags ...string) (*server, *side, error) {
		s, err := b.fingerpost(ctx, "write-git-"+c.String(), withGit.config, append(flags, "--git")...)
		if err != nil {
			return nil, nil, err
		}
		with := served(s, withGit, own)
		with.settle = s.allCommitted
		return s, with, nil
	}
	s, with, err := start()
	if err != nil {
		return err
	}
	ours, base := b.writing(with, b.connections), b.writing(without, b.connections)
	if err := b.alternate(ctx, ours, base); err != nil {
		return err
	}
	name := func(what string) string { return fmt.Sprintf("--git, %d at once: %s", b.connections, what) }
	rep.add(ours.against(base, perSecond, name("durable writes"), "writes/s").ratioAtLeast(0.8),
		ours.against(base, "p99", name("latency p99"), "ms"), ours.against(base, cpuEach, name("CPU"), "µs/write"))
	s.stop()

	// A write that waits for its commit, less one that does not.
	if s, with, err = start("--git-ack", "commit"); err != nil {
		return err
	}
	defer s.stop()
	bare := load{workers: 1, side: &side{name: "git commit-tree", pid: s.pid, worker: func(int) worker {
		return worker{close: func() {}, do: func() error {
			return git("-c", "core.fsync=committed,reference", "commit-tree", "-p", "HEAD", "-m", "bench", "HEAD^{tree}")
		}}
	}}}
	commits, writes, trees := b.writing(with, 1), b.writing(without, 1), b.turn("git commit-tree", bare)
	if err := b.alternate(ctx, commits, writes, trees); err != nil {
		return err
	}
	rep.add(measured("--git: a commit of one write", "ms", commits.median("p50")-writes.median("p50")).
		over("git commit-tree", trees.median("p50")).ratioAtMost(3))
	rep.note("The time of writes with --git ends when all are committed. A commit's cost is the p50 of a write with " +
		"--git-ack commit less that of a write without --git.")
	return nil
}

// allCommitted waits until no write lacks its commit.
func (s *server) allCommitted(ctx context.Context) error {
	for {
		values, err := metrics(s.ops)
		if err != nil {
			return err
		}
		if n, found := values["fingerpost_git_pending_writes"]; n == 0 && found {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}
