package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

const (
	visibleTimeout  = 10 * time.Second
	rewriteInterval = 100 * time.Millisecond
	rewrittenFiles  = 10 // rewritten in turn
)

// runReload times saves until resolve shows them, then rewrites files under load.
func runReload(ctx context.Context, b *bench) (*report, error) {
	s, c, err := b.serve(ctx)
	if err != nil {
		return nil, err
	}
	e, err := b.edit(c)
	if err != nil {
		return nil, err
	}
	rep := &report{Parameters: b.parameters(c, nil)}
	if err := b.timeSaves(ctx, s, e, rep); err != nil {
		return nil, err
	}
	return rep, b.rewriteUnderLoad(ctx, s, e, rep)
}

// An editor changes files of a corpus. Each change has a new revision, higher than any before.
type editor struct {
	corpus  *corpus
	last    atomic.Int64 // the last revision that was used
	touched map[int]bool
}

// edit marks a corpus as changed until the end of the command, when the generated files are written again.
func (b *bench) edit(c *corpus) (*editor, error) {
	if err := c.markDirty(); err != nil {
		return nil, fmt.Errorf("mark the corpus: %w", err)
	}
	e := &editor{corpus: c, touched: map[int]bool{}}
	e.last.Store(int64(c.Revision))
	b.atEnd(func() error {
		for i := range e.touched {
			if err := saveByRename(c.path(i), c.file(i, c.Revision)); err != nil {
				return err
			}
		}
		return c.clean()
	})
	return e, nil
}

// touch records that projects will be written.
func (e *editor) touch(own [][]int) {
	for _, projects := range own {
		for _, p := range projects {
			e.touched[p] = true
		}
	}
}

// save gives a project a new revision and returns it.
func (e *editor) save(project int, how saver) (int, error) {
	revision := int(e.last.Add(1))
	e.touched[project] = true
	return revision, how.save(e.corpus.path(project), e.corpus.file(project, revision))
}

// whileSaving calls f while popular projects are saved one at a time: the first at once, then one per interval, in each
// way of saving in turn. It returns the number of saves.
func (e *editor) whileSaving(schedule []uint32, interval time.Duration, ways []saver, f func() error) (int, error) {
	stop, done := make(chan struct{}), make(chan struct{})
	saves, saveErr := 0, error(nil)
	go func() {
		defer close(done)
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			// The first questions of a Zipf schedule are mostly for popular names.
			project := int(schedule[saves%rewrittenFiles]) / e.corpus.perProject()
			if _, saveErr = e.save(project, ways[saves/rewrittenFiles%len(ways)]); saveErr != nil {
				return
			}
			saves++
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	}()
	err := f()
	close(stop)
	<-done
	return saves, errors.Join(err, saveErr)
}

// A saver replaces a file's content in one of the ways of editors.
type saver struct {
	name string
	save func(path string, content []byte) error
}

func savers() []saver {
	return []saver{{"write and rename", saveByRename}, {"write in place", saveInPlace}}
}

func saveByRename(path string, content []byte) error {
	temp := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	if err := os.WriteFile(temp, content, 0o644); err != nil {
		return fmt.Errorf("save: %w", err)
	}
	return os.Rename(temp, path)
}

func saveInPlace(path string, content []byte) error { return os.WriteFile(path, content, 0o644) }

// timeSaves saves random projects one after the other, in each way of saving in turn, and polls until each save shows.
// The baseline is a save and one question.
func (b *bench) timeSaves(ctx context.Context, s *server, e *editor, rep *report) error {
	cl := newClient(s.addr, e.corpus.key)
	defer cl.close()
	random := rand.New(rand.NewPCG(corpusSeed, 0x5a7e))
	const base = "save and one question"
	var turns, bases []*turn
	for _, how := range savers() {
		bare := newTurn(base, nil) // measured together with the turn
		bases = append(bases, bare)
		turns = append(turns, newTurn(how.name, func(ctx context.Context, t *turn) error {
			var shown, once latencies
			for until := time.Now().Add(b.round); time.Now().Before(until) && ctx.Err() == nil; {
				project := random.IntN(e.corpus.Projects)
				if err := e.timeSave(cl, project, random.IntN(e.corpus.perProject()), how, &shown, &once); err != nil {
					return fmt.Errorf("%s %s: %w", how.name, e.corpus.relative(project), err)
				}
			}
			t.addTails(shown)
			bare.addTails(once)
			return nil
		}))
	}
	if err := b.alternate(ctx, turns...); err != nil {
		return err
	}
	for i, t := range turns {
		name := t.name + ": save → visible"
		rep.add(t.against(bases[i], "p50", name+", p50", "ms"))
		shown, bare := t.all.percentiles(tailParts...), bases[i].all.percentiles(tailParts...)
		for k, tail := range tailNames[1:] { // a round has too few saves for these
			row := comparedOnce(name+", "+tail, "ms", ms(shown[k+1]), ms(bare[k+1]), base)
			if tail == "p99" {
				row = row.atMost(50)
			}
			rep.add(row)
		}
	}
	return nil
}

// timeSave saves a project and asks for one of its names, as fast as answers come, until the answer is new. It adds to
// shown how long that took, and to once how long the save and one question took.
func (e *editor) timeSave(cl *client, project, name int, how saver, shown, once *latencies) error {
	host := e.corpus.appendHost(nil, project*e.corpus.perProject()+name)
	began := time.Now()
	revision, err := e.save(project, how)
	if err != nil {
		return err
	}
	saved := time.Now()
	var trip latencies
	for {
		asked := time.Now()
		a, err := cl.resolve(host)
		if err != nil {
			return err
		}
		trip.add(time.Since(asked))
		if a.status != 200 {
			return fmt.Errorf("status %d: %s", a.status, a.body)
		}
		got, ok := revisionOf(a.body)
		switch {
		case !ok:
			return fmt.Errorf("torn answer: %s", a.body)
		case got == revision:
			shown.add(time.Since(saved))
			once.add(saved.Sub(began) + trip.percentiles(0.5)[0])
			return nil
		case time.Since(saved) > visibleTimeout:
			return fmt.Errorf("revision %d does not show after %v, the answer has %d", revision, visibleTimeout, got)
		}
	}
}

// rewriteUnderLoad asks at half load, alternating between quiet rounds and rounds in which a file is rewritten every
// 100 ms.
func (b *bench) rewriteUnderLoad(ctx context.Context, s *server, e *editor, rep *report) error {
	c := e.corpus
	schedule := zipfSchedule(c.Domains)
	of := known(s, c, schedule)
	if err := b.warm(ctx, of); err != nil {
		return err
	}
	rate, err := b.halfRate(ctx, of)
	if err != nil {
		return err
	}
	of.asker = newRevisions(c, schedule) // of both: an answer must not be older than one of an earlier round
	l := b.closed(of)
	l.rate, l.duration = rate, b.round
	faults, saves := "", 0
	ask := func(ctx context.Context, t *turn) error {
		res, cache, err := l.withCache(ctx)
		if err != nil {
			return err
		}
		t.addTails(res.latencies)
		t.add("hits", cache.hitShare())
		t.add("stale", float64(res.faults[faultStale]))
		t.add("wrong", float64(res.failures()-res.faults[faultStale]))
		faults += res.describeFaults()
		return nil
	}
	quiet := newTurn("quiet", ask)
	busy := newTurn("with saves", func(ctx context.Context, t *turn) error {
		n, err := e.whileSaving(schedule, rewriteInterval, savers(), func() error { return ask(ctx, t) })
		saves += n
		return err
	})
	if err := b.alternate(ctx, quiet, busy); err != nil {
		return err
	}
	rep.add(
		comparedOnce("while a file is rewritten every 100 ms: wrong answers", "count",
			busy.sum("wrong"), quiet.sum("wrong"), "quiet").atMost(0),
		alone("stale answers", "count", busy.sum("stale")+quiet.sum("stale")).atMost(0),
		busy.against(quiet, "hits", "answered by the cache", "part of all").ratioAtLeast(0.99),
	)
	rep.add(busy.tails(quiet, "latency")...)
	rep.note("%d saves of %d much-asked files under %.0f requests a second.%s", saves, rewrittenFiles, rate, faults)
	return nil
}
