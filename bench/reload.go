package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"fingerpost/bench/chart"
)

const (
	visibleTimeout  = 10 * time.Second
	rewriteInterval = 100 * time.Millisecond
	rewrittenFiles  = 10 // rewritten in turn
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
	if err := b.timeSaves(ctx, s, e, rep); err != nil {
		return nil, err
	}
	return rep, b.rewriteUnderLoad(ctx, s, e, rep)
}

// An editor changes files of a corpus. Each save has a new revision, higher than any before.
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

// restore writes the generated files again.
func (e *editor) restore() error {
	for i := range e.touched {
		if err := saveByRename(e.corpus.path(i), e.corpus.file(i, e.corpus.Revision)); err != nil {
			return err
		}
	}
	return e.corpus.clean()
}

// visibility holds how long saves of one kind took to show, round by round.
type visibility struct {
	how          saver
	shown, bare  latencies // bare: a save and one question
	p50, bareP50 []float64 // ms, a round each
}

// timeSaves saves random projects one after the other, in each way of saving in turn, and polls until each save shows.
func (b *bench) timeSaves(ctx context.Context, s *server, e *editor, rep *report) error {
	cl, err := dial(s.addr, e.corpus.key)
	if err != nil {
		return err
	}
	defer cl.close()
	random := rand.New(rand.NewPCG(e.corpus.Seed, 0x5a7e))
	var ways []*visibility
	for _, how := range savers() {
		ways = append(ways, &visibility{how: how})
	}
	each := max(1, b.saves/b.load.rounds)
	for i := range b.load.rounds {
		for j := range ways {
			if err := ways[(i+j)%len(ways)].saves(ctx, cl, e, random, each); err != nil {
				return err
			}
		}
		line := fmt.Sprintf("round %d of %d, %d saves each:", i+1, b.load.rounds, each)
		for _, w := range ways {
			line += fmt.Sprintf("  %s visible after %.1f ms", w.how.name, w.p50[i])
		}
		b.say("%s", line)
	}
	curves := chart.Chart{Name: "visible", Title: "From a save to the new answer", X: chart.Axis{Label: "part of all saves", Scale: chart.Part},
		Y: chart.Axis{Label: "ms", Scale: chart.Log}}
	for _, w := range ways {
		rep.add(compared(w.how.name+": save → visible, p50", "ms", w.p50, w.bareP50, "save and one question"))
		shown, bare := w.shown.percentiles(tailParts...), w.bare.percentiles(tailParts...)
		for k := 1; k < tails; k++ {
			row := comparedOnce(w.how.name+": save → visible, "+tailNames[k], "ms", ms(shown[k]), ms(bare[k]), "save and one question")
			if k == tailP99 {
				row = row.atMost(50)
			}
			rep.add(row)
		}
		curves.Lines = append(curves.Lines, chart.Line{Name: w.how.name, Points: w.shown.curve()},
			chart.Line{Name: w.how.name + ": the save and one question", Points: w.bare.curve()})
	}
	rep.Charts = append(rep.Charts, curves)
	return nil
}

// saves makes one round of saves.
func (w *visibility) saves(ctx context.Context, cl *client, e *editor, random *rand.Rand, n int) error {
	c := e.corpus
	var shown, bare latencies
	for range n {
		if err := ctx.Err(); err != nil {
			return err
		}
		project := random.IntN(c.Projects)
		host := c.appendHost(nil, project*c.perProject()+random.IntN(c.perProject()))
		began := time.Now()
		revision, err := e.save(project, w.how)
		if err != nil {
			return err
		}
		saved := time.Now()
		var trip latencies
		if err := pollUntil(cl, host, revision, saved, &trip); err != nil {
			return fmt.Errorf("%s %s: %w", w.how.name, c.relative(project), err)
		}
		shown.add(time.Since(saved))
		bare.add(saved.Sub(began) + trip.percentiles(0.5)[0])
	}
	w.shown.merge(shown)
	w.bare.merge(bare)
	w.p50 = append(w.p50, ms(shown.percentiles(0.5)[0]))
	w.bareP50 = append(w.bareP50, ms(bare.percentiles(0.5)[0]))
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

// A watchedSide is a server at a constant rate whose answers are checked by revision.
type watchedSide struct {
	paced
	failures, stale int
	faults          string
	hits            []float64 // share that the cache answered, one per round
}

// round asks during one round.
func (w *watchedSide) round(ctx context.Context, l load, s *server, a asker) error {
	res, cache, err := l.withCache(ctx, s, a)
	if err != nil {
		return err
	}
	w.add(res.latencies)
	w.failures += res.failures() - res.faults[faultStale]
	w.stale += res.faults[faultStale]
	w.faults += res.describeFaults()
	w.hits = append(w.hits, cache.hitShare())
	return nil
}

// rewriteUnderLoad asks at half load, alternating between quiet rounds and rounds in which a file is rewritten every
// 100 ms.
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
	l.rate, l.duration = rate, b.load.round
	var quiet, busy watchedSide
	asker := newRevisions(c, schedule) // of both: an answer must not be older than one of an earlier round
	saves := 0
	for i := range b.load.rounds {
		for j := range 2 {
			if (i+j)%2 == 0 {
				err = quiet.round(ctx, l, s, asker)
			} else {
				err = e.whileRewriting(schedule, &saves, func() error { return busy.round(ctx, l, s, asker) })
			}
			if err != nil {
				return err
			}
		}
		b.say("round %d of %d:  quiet p99 %.3f ms  with a save every %v p99 %.3f ms", i+1, b.load.rounds,
			quiet.tails[tailP99][i], rewriteInterval, busy.tails[tailP99][i])
	}
	rep.add(
		comparedOnce("while a file is rewritten every 100 ms: wrong answers", "count", float64(busy.failures), float64(quiet.failures), "quiet").atMost(0),
		alone("stale answers", "count", float64(busy.stale+quiet.stale)).atMost(0),
		compared("answered by the cache", "part of all", busy.hits, quiet.hits, "quiet").ratioAtLeast(0.99),
	)
	rep.add(busy.comparedWith("latency", &quiet.paced, "quiet")...)
	rep.note("%d saves of %d much-asked files under %.0f requests a second.%s%s", saves, rewrittenFiles, rate, busy.faults, quiet.faults)
	return nil
}

// whileRewriting calls f while popular files are rewritten, and adds to saves.
func (e *editor) whileRewriting(schedule []uint32, saves *int, f func() error) error {
	var stop atomic.Bool
	var saveErr error
	done := make(chan struct{})
	go func() {
		defer close(done)
		saveErr = e.rewrite(&stop, schedule, saves)
	}()
	err := f()
	stop.Store(true)
	<-done
	return errors.Join(err, saveErr)
}

// rewrite saves a file of the popular projects every 100 ms, alternating between both ways of saving, until stop is
// set.
func (e *editor) rewrite(stop *atomic.Bool, schedule []uint32, saves *int) (err error) {
	tick := time.NewTicker(rewriteInterval)
	defer tick.Stop()
	for ; !stop.Load() && err == nil; *saves++ {
		// The first questions of a Zipf schedule are mostly for popular names.
		project := int(schedule[*saves%rewrittenFiles]) / e.corpus.perProject()
		_, err = e.save(project, savers()[*saves/rewrittenFiles%2])
		<-tick.C
	}
	return err
}

// withCache runs the load with an asker of its own and returns the cache's counters for that time.
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
