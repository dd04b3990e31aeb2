package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// writeWithGit compares durable writes with and without --git, in turn, and a commit with git commit-tree. without is
// the side of the server without git, c its corpus.
func (b *bench) writeWithGit(ctx context.Context, without *writeSide, c *corpus, rep *report) error {
	withGit, err := b.openCorpus("write-git-", c.corpusParams)
	if err != nil {
		return err
	}
	repo := filepath.Dir(withGit.config)
	git := func(args ...string) error {
		out, err := exec.CommandContext(ctx, "git", append([]string{"-C", repo, "-c", "user.name=bench", "-c",
			"user.email=bench@bench.example"}, args...)...).CombinedOutput()
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
	e, err := b.edit(withGit)
	if err != nil {
		return err
	}
	own := ownFiles(c.Projects, b.connections)
	e.touch(own)
	side := func(name string, flags ...string) (*server, *writeSide, error) {
		s, err := b.fingerpost(ctx, name, withGit.config, flags...)
		if err != nil {
			return nil, nil, err
		}
		return s, &writeSide{name: "with --git", pid: s.pid, last: &e.last, settle: s.allCommitted,
			writer: func() (writer, error) { return servedWriter(s, withGit) }}, nil
	}
	name := "write-git-" + c.String()
	s, ours, err := side(name, "--git")
	if err != nil {
		return err
	}
	turns := []*turn{b.writing(ours, own, 0), b.writing(without, own, 0)}
	turns[1].name = "without --git"
	if err := b.lead(ctx, turns...); err != nil {
		return err
	}
	if err := b.alternate(ctx, turns...); err != nil {
		return err
	}
	title := func(what string) string { return fmt.Sprintf("--git, %d at once: %s", b.connections, what) }
	rep.add(turns[0].against(turns[1], perSecond, title("durable writes"), "writes/s").ratioAtLeast(0.8),
		turns[0].against(turns[1], "p99", title("latency p99"), "ms"), turns[0].against(turns[1], cpuEach, title("CPU"),
			"ms/write"))
	s.stop()

	// A write that waits for its commit, less one that does not.
	if s, ours, err = side(name, "--git", "--git-ack", "commit"); err != nil {
		return err
	}
	defer s.stop()
	one := own[:1]
	commits, plain := b.writing(ours, one, 0), b.writing(without, one, 0)
	bare := newTurn("git commit-tree", func(ctx context.Context, t *turn) error {
		var l latencies
		l.reserve()
		for range 20 {
			began := time.Now()
			if err := git("-c", "core.fsync=committed,reference", "commit-tree", "-p", "HEAD", "-m", "bench",
				"HEAD^{tree}"); err != nil {
				return err
			}
			l.add(time.Since(began))
		}
		t.addTails(l)
		return nil
	})
	if err := b.alternate(ctx, commits, plain, bare); err != nil {
		return err
	}
	rep.add(comparedOnce("--git: a commit of one write", "ms", commits.median("p50")-plain.median("p50"),
		bare.median("p50"), "git commit-tree").ratioAtMost(3))
	rep.note("The time of writes with --git ends when all are committed.")
	rep.note("A commit's cost is the p50 of a write with --git-ack commit less that of a write without --git.")
	return nil
}

// allCommitted waits until no write lacks its commit.
func (s *server) allCommitted(ctx context.Context) error {
	for {
		metrics, err := s.metrics()
		if err != nil {
			return err
		}
		if n, found := metrics["fingerpost_git_pending_writes"]; n == 0 && found {
			return ctx.Err()
		}
		await(ctx, time.Now().Add(5*time.Millisecond))
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}
