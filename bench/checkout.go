package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// The two branches of the repository differ in the revision of some of the project files.
var branchRevisions = map[string]int{"first": 1, "second": 2}

const switchTimeout = 10 * time.Minute

// runCheckout lets git switch many files at once, under half load: a quiet phase, then the switch, both at the same
// rate. Then it times fingerpost validate on as many files as were switched.
func runCheckout(ctx context.Context, b *bench) (*report, error) {
	r, err := b.openRepository(ctx)
	if err != nil {
		return nil, err
	}
	c, from := r.corpus, branchRevisions[r.branch]
	s, err := b.fingerpost(ctx, fmt.Sprintf("checkout-%d-%s", b.switched, c), c.config)
	if err != nil {
		return nil, err
	}
	schedule := zipfSchedule(c.Domains, b.zipf, c.Seed)
	of := known(s, c, schedule)
	if err := b.warm(ctx, of, b.warmUp); err != nil {
		return nil, err
	}
	rate, err := b.halfRate(ctx, of)
	if err != nil {
		return nil, err
	}
	l := b.closed(of)
	l.rate, l.duration = rate, 3*b.round
	l.asker = newSwitching(c, schedule, from, from, r.every)
	quiet, _, err := l.withCache(ctx)
	if err != nil {
		return nil, err
	}
	to := "first"
	if r.branch == to {
		to = "second"
	}
	b.say("switching from %s to %s", r.branch, to)
	judge := newSwitching(c, schedule, from, branchRevisions[to], r.every)
	l.asker, l.duration = judge, 0
	asking, stop := context.WithTimeout(ctx, switchTimeout)
	defer stop()
	watched := make(chan switched, 1)
	go func() {
		watched <- r.watchSwitch(asking, s, to)
		stop()
	}()
	busy, busyCache, err := l.withCache(asking)
	stop() // the load may have failed
	w := <-watched
	if err == nil {
		err = w.err
	}
	if err != nil {
		return nil, err
	}
	s.stop()
	switched := (c.Projects + r.every - 1) / r.every
	validate, err := b.timeValidate(ctx, switched)
	if err != nil {
		return nil, err
	}
	was, is := quiet.latencies.percentiles(0.5, 0.99, 0.999), busy.latencies.percentiles(0.5, 0.99, 0.999)
	rep := &report{Parameters: b.parameters(c, nil)}
	rep.add(
		comparedOnce("while git switches files: wrong answers", "count",
			float64(busy.failures()), float64(quiet.failures()), "quiet").atMost(0),
		alone("old answers after a new one had been seen", "count", float64(judge.mixed)).atMost(0),
		comparedOnce("latency p50", "ms", ms(is[0]), ms(was[0]), "quiet"),
		comparedOnce("latency p99", "ms", ms(is[1]), ms(was[1]), "quiet").ratioAtMost(10),
		comparedOnce("latency p99.9", "ms", ms(is[2]), ms(was[2]), "quiet"),
		alone("git's own time", "s", w.git.Seconds()),
		comparedOnce("from the end of git to all visible", "s", w.visible.Seconds(), validate.Seconds(),
			"fingerpost validate of these files on the quiet machine").ratioAtMost(2),
		alone("answered by the cache", "part of all", busyCache.hitShare()),
	)
	rep.note("git switches %d of %d files. %d requests a second at random intervals.%s",
		switched, c.Projects, int(rate), busy.describeFaults())
	if judge.mixed > 0 {
		rep.note("States were mixed for %.3f s: from the first new answer to the last old one.", judge.mixedFor.Seconds())
	}
	return rep, nil
}

// timeValidate returns how long fingerpost takes to read and decode a corpus of so many files.
func (b *bench) timeValidate(ctx context.Context, projects int) (time.Duration, error) {
	p := b.corpus
	p.Domains, p.Projects = projects*p.perProject(), projects
	c, err := b.openCorpus("validate-", p)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	out, err := exec.CommandContext(ctx, b.binary, "validate", c.config).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("fingerpost validate: %w: %s", err, out)
	}
	return time.Since(began), nil
}

// A repository is a git work tree with a corpus in it.
type repository struct {
	dir    string
	corpus *corpus
	branch string // checked out now
	every  int    // the branches differ in the projects whose number is a multiple of it
}

func (r *repository) git(ctx context.Context, args ...string) (string, error) {
	settings := []string{"-C", r.dir, "-c", "gc.auto=0", "-c", "user.name=Bench", "-c", "user.email=bench@acme.example"}
	out, err := exec.CommandContext(ctx, "git", append(settings, args...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// openRepository makes the repository or brings the one of an earlier run back to a clean state.
func (b *bench) openRepository(ctx context.Context) (*repository, error) {
	p := b.corpus
	p.Revision = branchRevisions["first"]
	c, err := b.openCorpus(fmt.Sprintf("checkout-%d-", b.switched), p)
	if err != nil {
		return nil, err
	}
	r := &repository{dir: filepath.Dir(c.config), corpus: c, every: max(1, p.Projects/b.switched)}
	if _, err := os.Stat(filepath.Join(r.dir, ".git", "complete")); err != nil {
		b.say("repository: %d projects, two branches", p.Projects)
		if err := r.create(ctx); err != nil {
			return nil, err
		}
	}
	if r.branch, err = r.git(ctx, "rev-parse", "--abbrev-ref", "HEAD"); err != nil {
		return nil, err
	}
	_, err = r.git(ctx, "checkout", "--quiet", "--force", r.branch)
	return r, err
}

// create commits the files of both branches, as one pack each: git would read many loose objects more slowly.
func (r *repository) create(ctx context.Context) error {
	if err := os.RemoveAll(filepath.Join(r.dir, ".git")); err != nil {
		return err
	}
	if _, err := r.git(ctx, "init", "--quiet"); err != nil {
		return err
	}
	for _, branch := range []string{"first", "second"} {
		if err := r.corpus.writeProjects(branchRevisions[branch], r.every); err != nil {
			return err
		}
		for _, args := range [][]string{{"checkout", "--quiet", "-b", branch}, {"add", "projects.d"},
			{"commit", "--quiet", "--message", branch}, {"repack", "-a", "-d", "-q"}} {
			if _, err := r.git(ctx, args...); err != nil {
				return err
			}
		}
	}
	if _, err := r.git(ctx, "checkout", "--quiet", "first"); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.dir, ".git", "complete"), nil, 0o644)
}

// switched is what watchSwitch saw.
type switched struct {
	git, visible time.Duration
	err          error
}

// watchSwitch runs git and waits until a sample of the projects shows the branch.
func (r *repository) watchSwitch(ctx context.Context, s *server, branch string) (w switched) {
	began := time.Now()
	if _, w.err = r.git(ctx, "checkout", "--quiet", branch); w.err != nil {
		return w
	}
	w.git = time.Since(began)
	cl := newClient(s.addr, r.corpus.key)
	defer cl.close()
	const sample = 500
	sure := time.Now()
	for i := 0; i < sample; {
		project := i * r.corpus.Projects / sample / r.every * r.every
		a, err := cl.resolve(r.corpus.appendHost(nil, project*r.corpus.perProject()))
		if err != nil {
			w.err = err
			return w
		}
		if n, _ := revisionOf(a.body); n == branchRevisions[branch] {
			i++
			continue
		}
		sure = time.Now()
		if w.err = ctx.Err(); w.err != nil {
			return w
		}
		await(ctx, sure.Add(20*time.Millisecond))
	}
	w.visible = sure.Sub(began) - w.git
	return w
}
