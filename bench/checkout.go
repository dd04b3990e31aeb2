package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// The two branches of the repository differ in the revision of every project file.
var branchRevisions = map[string]int{"first": 1, "second": 2}

const switchTimeout = 10 * time.Minute

// runCheckout lets git switch every file at once, under half load.
func runCheckout(ctx context.Context, b *bench) (*report, error) {
	r, err := b.openRepository(ctx)
	if err != nil {
		return nil, err
	}
	s, err := b.fingerpost(ctx, "checkout-"+r.corpus.String(), r.corpus.config, b.cacheFlags()...)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	return b.switchUnderLoad(ctx, s, r)
}

// A repository is a git work tree with a corpus in it.
type repository struct {
	dir    string
	corpus *corpus
	branch string // checked out now
}

func (r *repository) git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", r.dir, "-c", "gc.auto=0", "-c", "advice.detachedHead=false"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// openRepository makes the repository or brings the one of an earlier run back to a clean state.
func (b *bench) openRepository(ctx context.Context) (*repository, error) {
	p := b.corpus
	p.Revision = branchRevisions["first"]
	dir := filepath.Join(b.work, "checkout-"+p.String())
	b.say("repository: %d projects, two branches", p.Projects)
	c, err := openCorpus(dir, p)
	if err != nil {
		return nil, err
	}
	r := &repository{dir: dir, corpus: c}
	if _, err := os.Stat(filepath.Join(dir, ".git", "complete")); err != nil {
		if err := r.create(ctx); err != nil {
			return nil, err
		}
	}
	if r.branch, err = r.git(ctx, "rev-parse", "--abbrev-ref", "HEAD"); err != nil {
		return nil, err
	}
	if _, err := r.git(ctx, "checkout", "--quiet", "--force", r.branch); err != nil {
		return nil, err
	}
	return r, nil
}

// create makes both commits with fast-import, which writes one pack instead of 200,000 loose objects.
func (r *repository) create(ctx context.Context) error {
	if err := os.RemoveAll(filepath.Join(r.dir, ".git")); err != nil {
		return err
	}
	if _, err := r.git(ctx, "init", "--quiet", "--initial-branch", "first"); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "git", "-C", r.dir, "fast-import", "--quiet")
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	var errText strings.Builder
	cmd.Stderr = &errText
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("git fast-import: %w", err)
	}
	writeErr := r.corpus.writeCommits(in)
	in.Close()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("git fast-import: %w: %s", err, errText.String())
	}
	if writeErr != nil {
		return fmt.Errorf("git fast-import: %w", writeErr)
	}
	// The files of the first branch exist already; only the index is missing.
	if _, err := r.git(ctx, "reset", "--quiet", "--hard"); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.dir, ".git", "complete"), nil, 0o644)
}

// switchUnderLoad is the measurement: a quiet phase, then the switch, both at the same rate.
func (b *bench) switchUnderLoad(ctx context.Context, s *server, r *repository) (*report, error) {
	c, from := r.corpus, branchRevisions[r.branch]
	schedule := zipfSchedule(c.Domains, b.load.zipf, c.Seed)
	ours := known(s, c, schedule)
	if err := b.warm(ctx, ours, b.load.warmUp); err != nil {
		return nil, err
	}
	rate, err := b.halfRate(ctx, ours)
	if err != nil {
		return nil, err
	}
	l := b.closed(ours)
	l.rate, l.duration = rate, b.phase()
	quiet, _, err := l.withCache(ctx, s, newSwitching(c, schedule, from, from))
	if err != nil {
		return nil, err
	}
	to, target := "second", branchRevisions["second"]
	if r.branch == to {
		to, target = "first", branchRevisions["first"]
	}
	b.say("switching from %s to %s", r.branch, to)
	judge := newSwitching(c, schedule, from, target)
	var stop atomic.Bool
	l.duration, l.stop = switchTimeout, &stop
	watched := make(chan switched, 1)
	go func() {
		watched <- r.watchSwitch(ctx, s, to, target)
		stop.Store(true)
	}()
	busy, busyCache, err := l.withCache(ctx, s, judge)
	w := <-watched
	if err == nil {
		err = w.err
	}
	if err != nil {
		return nil, err
	}
	r.branch = to
	was := quiet.latencies.percentiles(0.5, 0.99, 0.999)
	is := busy.latencies.percentiles(0.5, 0.99, 0.999)
	rep := &report{Parameters: b.parameters(c, nil)}
	rep.add(
		comparedOnce("while git switches all files: wrong answers", "count", float64(busy.failures()), float64(quiet.failures()), "quiet").atMost(0),
		alone("old answers after a new one had been seen", "count", float64(judge.mixed)).atMost(0),
		comparedOnce("latency p50", "ms", ms(is[0]), ms(was[0]), "quiet"),
		comparedOnce("latency p99", "ms", ms(is[1]), ms(was[1]), "quiet").ratioAtMost(5),
		comparedOnce("latency p99.9", "ms", ms(is[2]), ms(was[2]), "quiet"),
		alone("git's own time", "s", w.git.Seconds()),
		alone("from the end of git to all visible", "s", w.visible.Seconds()),
		alone("answered by the cache", "part of all", busyCache.hitShare()),
	)
	rep.note("%d requests a second at random intervals.%s", int(rate), busy.describeFaults())
	if judge.mixed > 0 {
		rep.note("States were mixed for %.3f s: from the first new answer to the last old one.", judge.mixedFor.Seconds())
	}
	return rep, nil
}

// switched is what watchSwitch saw.
type switched struct {
	git, visible time.Duration
	err          error
}

// watchSwitch runs git and waits until a sample of the projects shows the target.
func (r *repository) watchSwitch(ctx context.Context, s *server, branch string, target int) (w switched) {
	ctx, cancel := context.WithTimeout(ctx, switchTimeout)
	defer cancel()
	began := time.Now()
	if _, w.err = r.git(ctx, "checkout", "--quiet", branch); w.err != nil {
		return w
	}
	w.git = time.Since(began)
	cl, err := dial(s.addr, r.corpus.key)
	if err != nil {
		w.err = err
		return w
	}
	defer cl.close()
	const sample = 500
	sure := time.Now()
	for i := 0; i < sample; {
		project := i * r.corpus.Projects / sample
		a, err := cl.resolve(r.corpus.appendHost(nil, project*r.corpus.perProject()))
		if err != nil {
			w.err = err
			return w
		}
		if n, _ := revisionOf(a.body); n == target {
			i++
			continue
		}
		sure = time.Now()
		select {
		case <-ctx.Done():
			w.err = fmt.Errorf("wait for %s to show: %w", branch, ctx.Err())
			return w
		case <-time.After(20 * time.Millisecond):
		}
	}
	w.visible = sure.Sub(began) - w.git
	return w
}
