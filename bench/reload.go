package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"fingerpost/bench/wire"
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

// timeSaves saves one project after the other, in each way of saving, until resolve shows it. The baseline is a save and
// one question.
func (b *bench) timeSaves(ctx context.Context, s *server, c *corpus, rep *report) error {
	base := b.turn("save and one question", load{side: saves(s, c, savers()[0], nil), workers: 1})
	turns := []*turn{base}
	for _, how := range savers() {
		turns = append(turns, b.turn(how.name, load{side: saves(s, c, how, func() {}), workers: 1}))
	}
	if err := b.alternate(ctx, turns...); err != nil {
		return err
	}
	for _, t := range turns[1:] {
		rows := t.tails(base, t.name+": save → visible,")
		rows[slices.Index(tailNames, "p99")] = rows[slices.Index(tailNames, "p99")].atMost(50)
		rep.add(rows...)
	}
	return nil
}

// saves is a side that saves projects and asks for each, until the answer is new. It pauses between two questions; with
// a pause of nil it asks once.
func saves(s *server, c *corpus, how saver, pause func()) *side {
	return &side{name: how.name, pid: s.pid, worker: func(int) worker {
		cl, n := wire.NewClient(s.addr, wire.KeyField, c.key), 0
		return worker{close: cl.Close, do: func() error {
			n++
			project := n * 97 % c.Projects
			revision, err := c.save(project, how)
			if err != nil {
				return err
			}
			host := c.appendHost(nil, project*c.perProject())
			for until := time.Now().Add(visibleTimeout); time.Now().Before(until); pause() {
				a, err := cl.Resolve(host)
				if err != nil {
					return err
				}
				got, ok := wire.RevisionOf(a.Body)
				switch {
				case a.Status != 200 || !ok:
					return fmt.Errorf("resolve %s: status %d, or composed of two states: %s", host, a.Status, a.Body)
				case got == revision || pause == nil:
					return nil
				}
			}
			return fmt.Errorf("revision %d of %s does not show after %v", revision, host, visibleTimeout)
		}}
	}}
}

// rewriteUnderLoad asks at half load, alternating between quiet rounds and rounds in which a popular file is rewritten
// every 100 ms.
func (b *bench) rewriteUnderLoad(ctx context.Context, s *server, c *corpus, rep *report) error {
	if err := b.fill(ctx, s, c, c.names()); err != nil {
		return err
	}
	schedule, seen := c.zipf(), make([]atomic.Int32, c.Projects)
	asking := load{side: asks(s, schedule, func() question { return c.newest(seen) }), workers: b.connections}
	var err error
	if asking.rate, err = b.halfRate(ctx, asking.side); err != nil {
		return err
	}
	saved := 0
	projects, ways := muchAsked(schedule, c.perProject(), rewrittenFiles), savers()
	save := worker{close: func() {}, do: func() error {
		_, err := c.save(projects[saved%len(projects)], ways[saved/len(projects)%len(ways)])
		saved++
		return err
	}}
	saving := load{side: &side{name: "save", worker: func(int) worker { return save }}, workers: 1,
		rate: float64(time.Second / rewriteInterval)}
	quiet := b.turn("quiet", asking)
	busy := newTurn("with saves", func(ctx context.Context, t *turn) error {
		_, err := saving.while(ctx, func() error { return quiet.measure(ctx, t) })
		return err
	})
	if err := b.alternate(ctx, quiet, busy); err != nil {
		return err
	}
	rep.add(busy.against(quiet, hits, "answered by the cache", "part of all").ratioAtLeast(0.99))
	rep.add(busy.tails(quiet, "while a file is rewritten every 100 ms: latency")...)
	rep.note("%d saves of %d much-asked files under %.0f requests a second. No answer was wrong, composed of two states, "+
		"or older than one that had come before its question was sent: one such answer ends the run.",
		saved, len(projects), asking.rate)
	return nil
}
