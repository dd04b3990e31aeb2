package main

import (
	"context"
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
	rewrittenFiles  = 10
)

// runReload times saves until resolve shows them, then rewrites files under load.
func runReload(ctx context.Context, b *bench) (*report, error) {
	s, c, err := b.serve(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.edited(); err != nil {
		return nil, err
	}
	rep := &report{Parameters: b.parameters(c, nil)}
	if err := b.timeSaves(ctx, s, c, rep); err != nil {
		return nil, err
	}
	return rep, b.rewriteUnderLoad(ctx, s, c, rep)
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
func (b *bench) timeSaves(ctx context.Context, s *server, c *corpus, rep *report) error {
	cl := newClient(s.addr, c.key)
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
				project := random.IntN(c.Projects)
				if err := c.timeSave(cl, project, random.IntN(c.perProject()), how, &shown, &once); err != nil {
					return fmt.Errorf("%s %s: %w", how.name, c.relative(project), err)
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
			row := measured(name+", "+tail, "ms", ms(shown[k+1])).over(base, ms(bare[k+1]))
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
func (c *corpus) timeSave(cl *client, project, name int, how saver, shown, once *latencies) error {
	host := c.appendHost(nil, project*c.perProject()+name)
	began := time.Now()
	revision, err := c.save(project, how)
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
		trip = append(trip, time.Since(asked))
		if a.status != 200 {
			return fmt.Errorf("status %d: %s", a.status, a.body)
		}
		got, ok := revisionOf(a.body)
		switch {
		case !ok:
			return fmt.Errorf("torn answer: %s", a.body)
		case got == revision:
			*shown = append(*shown, time.Since(saved))
			*once = append(*once, saved.Sub(began)+trip.percentiles(0.5)[0])
			return nil
		case time.Since(saved) > visibleTimeout:
			return fmt.Errorf("revision %d does not show after %v, the answer has %d", revision, visibleTimeout, got)
		}
	}
}

// rewriteUnderLoad asks at half load, alternating between quiet rounds and rounds in which a popular file is rewritten
// every 100 ms.
func (b *bench) rewriteUnderLoad(ctx context.Context, s *server, c *corpus, rep *report) error {
	if err := b.fill(ctx, s, c, c.names()); err != nil {
		return err
	}
	schedule, seen := c.zipf(), make([]atomic.Int32, c.Projects)
	asking := load{side: asks(s, schedule, func() question { return c.newest(s.addr, seen) }), workers: b.connections}
	var err error
	if asking.rate, err = b.halfRate(ctx, asking.side); err != nil {
		return err
	}
	saves := 0
	projects, ways := muchAsked(schedule, c.perProject(), rewrittenFiles), savers()
	save := worker{close: func() {}, do: func() error {
		_, err := c.save(projects[saves%len(projects)], ways[saves/len(projects)%len(ways)])
		saves++
		return err
	}}
	saving := load{side: &side{name: "save", worker: func(int) worker { return save }}, workers: 1,
		rate: float64(time.Second / rewriteInterval)}
	ask := b.turn("quiet", asking)
	withHits := func(ctx context.Context, t *turn) error {
		before, err := s.metrics()
		if err != nil {
			return err
		}
		if err := ask.measure(ctx, t); err != nil {
			return err
		}
		after, err := s.metrics()
		t.add("hits", hitShare(before, after))
		return err
	}
	quiet := newTurn("quiet", withHits)
	busy := newTurn("with saves", func(ctx context.Context, t *turn) error {
		_, err := saving.while(ctx, func() error { return withHits(ctx, t) })
		return err
	})
	if err := b.alternate(ctx, quiet, busy); err != nil {
		return err
	}
	rep.add(busy.against(quiet, "hits", "answered by the cache", "part of all").ratioAtLeast(0.99))
	rep.add(busy.tails(quiet, "while a file is rewritten every 100 ms: latency")...)
	rep.note("%d saves of %d much-asked files under %.0f requests a second. No answer was wrong, composed of two states, "+
		"or older than one that had come before its question was sent: one such answer ends the run.",
		saves, len(projects), asking.rate)
	return nil
}
