package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

const (
	visibleTimeout  = 10 * time.Second
	rewriteInterval = 100 * time.Millisecond
	rewrittenFiles  = 10 // that take turns
)

// runReload times saves until resolve shows them, then rewrites files under load.
func runReload(ctx context.Context, b *bench) (rep *report, err error) {
	c, err := b.openCorpus(b.corpus)
	if err != nil {
		return nil, err
	}
	s, err := b.fingerpost(ctx, c.String(), c.config, b.cacheFlags()...)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	return b.reloads(ctx, s, c)
}

func (b *bench) reloads(ctx context.Context, s *server, c *corpus) (rep *report, err error) {
	e := &editor{corpus: c, revision: c.Revision, touched: map[int]bool{}}
	if err := c.markDirty(); err != nil {
		return nil, fmt.Errorf("mark the corpus: %w", err)
	}
	defer func() { err = errors.Join(err, e.restore()) }()
	rep = &report{Parameters: b.parameters(c, map[string]any{"saves": b.saves})}
	for _, how := range savers() {
		b.say("%s: %d saves", how.name, b.saves)
		if err := b.timeSaves(ctx, s, e, how, rep); err != nil {
			return nil, err
		}
	}
	return rep, b.rewriteUnderLoad(ctx, s, e, rep)
}

// An editor changes files of a corpus. Each save has a revision of its own, higher than any before.
type editor struct {
	corpus   *corpus
	revision int
	touched  map[int]bool
}

// save gives a project a new revision and returns it.
func (e *editor) save(project int, how saver) (int, error) {
	e.revision++
	e.touched[project] = true
	return e.revision, how.save(e.corpus.path(project), e.corpus.file(project, e.revision))
}

// restore brings the files back to what was generated.
func (e *editor) restore() error {
	for i := range e.touched {
		if err := saveByRename(e.corpus.path(i), e.corpus.file(i, e.corpus.Revision)); err != nil {
			return err
		}
	}
	return e.corpus.clean()
}

// timeSaves saves random projects one after the other and polls until each save shows.
func (b *bench) timeSaves(ctx context.Context, s *server, e *editor, how saver, rep *report) error {
	c := e.corpus
	cl, err := dial(s.addr, c.key)
	if err != nil {
		return err
	}
	defer cl.close()
	random := rand.New(rand.NewPCG(c.Seed, 0x5a7e))
	var visible, saving, trip latencies
	for range b.saves {
		if err := ctx.Err(); err != nil {
			return err
		}
		project := random.IntN(c.Projects)
		host := c.appendHost(nil, project*c.perProject()+random.IntN(c.perProject()))
		began := time.Now()
		revision, err := e.save(project, how)
		if err != nil {
			return err
		}
		saved := time.Now()
		saving.add(saved.Sub(began))
		if err := pollUntil(cl, host, revision, saved, &trip); err != nil {
			return fmt.Errorf("%s %s: %w", how.name, c.relative(project), err)
		}
		visible.add(time.Since(saved))
	}
	shown, saves, trips := visible.percentiles(0.5, 0.99), saving.percentiles(0.5, 0.99), trip.percentiles(0.5, 0.99)
	rep.add(
		beside(how.name+": save → visible, p50", "ms", ms(shown[0]), ms(saves[0]+trips[0]), "save and one question, p50"),
		beside(how.name+": save → visible, p99", "ms", ms(shown[1]), ms(saves[1]+trips[1]), "save and one question, p99").atMost(50),
	)
	return nil
}

// pollUntil asks as fast as answers come until host shows the revision.
func pollUntil(cl *client, host []byte, revision int, since time.Time, trip *latencies) error {
	for {
		began := time.Now()
		a, err := cl.resolve(host)
		if err != nil {
			return err
		}
		trip.add(time.Since(began))
		if a.status != 200 {
			return fmt.Errorf("status %d: %s", a.status, a.body)
		}
		got, ok := revisionOf(a.body)
		switch {
		case !ok:
			return fmt.Errorf("torn answer: %s", a.body)
		case got == revision:
			return nil
		case time.Since(since) > visibleTimeout:
			return fmt.Errorf("revision %d does not show after %v, the answer has %d", revision, visibleTimeout, got)
		}
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// rewriteUnderLoad compares a quiet phase at half load with one in which a file is rewritten every 100 ms.
func (b *bench) rewriteUnderLoad(ctx context.Context, s *server, e *editor, rep *report) error {
	c := e.corpus
	schedule := zipfSchedule(c.Domains, b.load.zipf, c.Seed)
	ours := known(s, c, schedule)
	if err := b.warm(ctx, ours, b.load.warmUp); err != nil {
		return err
	}
	rate, err := b.halfRate(ctx, ours)
	if err != nil {
		return err
	}
	l := b.closed(ours)
	l.rate, l.duration = rate, b.phase()
	quiet, quietCache, err := l.withCache(ctx, s, newRevisions(c, schedule))
	if err != nil {
		return err
	}
	var saves int
	var saveErr error
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		saves, saveErr = e.rewrite(&stop, schedule)
	}()
	busy, busyCache, err := l.withCache(ctx, s, newRevisions(c, schedule))
	stop.Store(true)
	<-done
	if err := errors.Join(err, saveErr); err != nil {
		return err
	}
	was, is := quiet.latencies.percentiles(0.5, 0.99, 0.999), busy.latencies.percentiles(0.5, 0.99, 0.999)
	stale := busy.faults[faultStale]
	rep.add(
		beside("while a file is rewritten every 100 ms: wrong answers", "count", float64(busy.failures()-stale), float64(quiet.failures()), "quiet").atMost(0),
		alone("stale answers", "count", float64(stale)).atMost(0),
		beside("answered by the cache", "part of all", busyCache.hitShare(), quietCache.hitShare(), "quiet").ratioAtLeast(0.99),
		beside("latency p50", "ms", ms(is[0]), ms(was[0]), "quiet"),
		beside("latency p99", "ms", ms(is[1]), ms(was[1]), "quiet"),
		beside("latency p99.9", "ms", ms(is[2]), ms(was[2]), "quiet"),
	)
	rep.note("%d saves of %d much-asked files under %.0f requests a second.%s", saves, rewrittenFiles, rate, busy.describeFaults())
	return nil
}

// rewrite saves a file of the much-asked projects every 100 ms, in both ways of saving by turns, until stop is set.
func (e *editor) rewrite(stop *atomic.Bool, schedule []uint32) (saves int, err error) {
	tick := time.NewTicker(rewriteInterval)
	defer tick.Stop()
	for ; !stop.Load() && err == nil; saves++ {
		<-tick.C
		// The first questions of a Zipf schedule are for popular names more often than not.
		project := int(schedule[saves%rewrittenFiles]) / e.corpus.perProject()
		_, err = e.save(project, savers()[saves/rewrittenFiles%2])
	}
	return saves, err
}

// withCache runs the load with an asker of its own and tells what the cache did meanwhile.
func (l load) withCache(ctx context.Context, s *server, a asker) (*loadResult, cacheCounts, error) {
	before, err := s.cache()
	if err != nil {
		return nil, nil, err
	}
	l.asker = a
	res, err := l.run(ctx)
	if err != nil {
		return nil, nil, err
	}
	after, err := s.cache()
	if err != nil {
		return nil, nil, err
	}
	return res, after.since(before), nil
}
