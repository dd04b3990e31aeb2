package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/perf/benchmath"
)

// speedCommand compares two builds. It is no part of all, because it needs a second binary.
const speedCommand = "speed"

var speed = command{speedCommand,
	"CPU of a hit, a save, a write, a page of a list and a start, size and memory, against the binary -base", runSpeed}

const (
	mostSlower      = 1.05 // the ratio from which on a build counts as slower, if the interval lies above 1
	speedConfidence = 0.90 // of the interval
	speedWriters    = 4
	speedSaves      = 40  // in a round
	listPages       = 400 // asked in a round, 100 rows each
)

// speedOptions are the flags of speed.
type speedOptions struct{ base, serverCPU string }

func (o *speedOptions) register(f *flag.FlagSet) {
	f.StringVar(&o.base, "base", o.base, "the binary to compare with")
	f.StringVar(&o.serverCPU, "server-cpu", o.serverCPU,
		"processors that servers may use, as in taskset -c (default: all)")
}

// A build is one of the two sides of speed: a binary with a corpus, a store and a server of its own.
type build struct {
	name, binary string
	corpus       *corpus
	editor       *editor
	server       *server
	calls        *client
}

// runSpeed asks two builds to do the same work, one after the other in each round, and compares the CPU time of the
// server for each operation. It says which is slower only if the difference is beyond the noise of the rounds.
func runSpeed(ctx context.Context, b *bench) (*report, error) {
	if err := b.buildBinary(ctx); err != nil {
		return nil, err
	}
	here, base := &build{name: "here", binary: b.binary}, &build{name: "base", binary: b.speed.base}
	for _, side := range []*build{here, base} {
		if err := b.open(ctx, side); err != nil {
			return nil, err
		}
	}
	rep := &report{Parameters: b.parameters(here.corpus, map[string]any{"serverCPU": b.speed.serverCPU})}
	if err := b.speedOfCalls(ctx, rep, here, base); err != nil {
		return nil, err
	}
	if err := b.speedOfStarts(ctx, rep, here, base); err != nil {
		return nil, err
	}
	sizes, err := binarySizes(here, base)
	if err != nil {
		return nil, err
	}
	rep.add(sizes)
	rep.note("A ratio has the 90 %% interval of its median over the rounds. It is too high above %v, if the interval "+
		"lies above 1.", mostSlower)
	return rep, nil
}

// open gives a build its corpus and starts it on an empty store.
func (b *bench) open(ctx context.Context, side *build) (err error) {
	p := b.corpus
	p.Writes = true
	if side.corpus, err = b.openCorpus("speed-"+side.name+"-", p); err != nil {
		return err
	}
	if side.editor, err = b.edit(side.corpus); err != nil {
		return err
	}
	if err = b.clearStore(side.store()); err != nil {
		return err
	}
	return b.startBuild(ctx, side)
}

func (side *build) store() string { return "speed-" + side.name }

func (b *bench) startBuild(ctx context.Context, side *build) (err error) {
	own := b.binary
	b.binary = side.binary
	defer func() { b.binary = own }()
	if side.server, err = b.fingerpost(ctx, side.store(), side.corpus.config); err != nil {
		return err
	}
	side.calls = newClient(side.server.addr, side.corpus.key)
	b.atEnd(func() error { side.calls.close(); return nil })
	return nil
}

// An operation is work that both builds do in each round; it returns how many operations it has made.
type operation struct {
	name string
	do   func(ctx context.Context, side *build) (count int, err error)
}

func (b *bench) speedOfCalls(ctx context.Context, rep *report, here, base *build) error {
	hit := func(ctx context.Context, side *build) (int, error) {
		l := b.closed(known(side.server, side.corpus, zipfSchedule(side.corpus.Domains)))
		l.duration = b.round
		res, err := l.exact(ctx)
		if err != nil {
			return 0, err
		}
		return res.requests, nil
	}
	for _, op := range []operation{{"a resolve hit", hit}, {"a save", saveRound}, {"an API write", b.writeRound},
		{"a page of a list", listRound}} {
		b.say("%s", op.name)
		for _, side := range []*build{here, base} { // not measured: caches fill
			if _, err := op.do(ctx, side); err != nil {
				return err
			}
		}
		ours, theirs := b.operationTurn(op, here), b.operationTurn(op, base)
		if err := b.alternate(ctx, ours, theirs); err != nil {
			return err
		}
		rep.add(paired(op.name+": CPU of the server", "µs/request", ours.figures[cpuEach], theirs.figures[cpuEach]))
	}
	return nil
}

// operationTurn measures the CPU time of the server for each operation, in µs.
func (b *bench) operationTurn(op operation, side *build) *turn {
	return newTurn(side.name, func(ctx context.Context, t *turn) error {
		before, err := processCPU(side.server.pid)
		if err != nil {
			return err
		}
		n, err := op.do(ctx, side)
		if err != nil {
			return fmt.Errorf("%s: %w", op.name, err)
		}
		after, err := processCPU(side.server.pid)
		t.add(cpuEach, float64((after-before).Nanoseconds())/1e3/float64(n))
		return err
	})
}

// saveRound saves files as an editor does and waits until resolve shows each. It asks seldom, because the questions
// count, too.
func saveRound(ctx context.Context, side *build) (int, error) {
	for i := range speedSaves {
		project := i * side.corpus.Projects / speedSaves
		revision, err := side.editor.save(project, savers()[0])
		if err != nil {
			return 0, err
		}
		host := side.corpus.appendHost(nil, project*side.corpus.perProject())
		for until := time.Now().Add(visibleTimeout); ; await(ctx, time.Now().Add(5*time.Millisecond)) {
			a, err := side.calls.resolve(host)
			if err != nil {
				return 0, err
			}
			if got, _ := revisionOf(a.body); got == revision {
				break
			}
			if err := ctx.Err(); err != nil || time.Now().After(until) {
				return 0, fmt.Errorf("revision %d of %s does not show: %w", revision, host, err)
			}
		}
	}
	return speedSaves, nil
}

func (b *bench) writeRound(ctx context.Context, side *build) (int, error) {
	own := ownFiles(side.corpus.Projects, speedWriters)
	side.editor.touch(own)
	w := &writeSide{name: side.name, pid: side.server.pid, last: &side.editor.last,
		writer: func() (writer, error) { return servedWriter(side.server, side.corpus) }}
	res, err := w.write(ctx, own, 0, b.round)
	if err != nil {
		return 0, err
	}
	return res.count(), nil
}

func listRound(_ context.Context, side *build) (int, error) {
	for i := range listPages {
		pages := max(1, side.corpus.Projects/100)
		a, err := side.calls.call("GET", fmt.Sprintf("/api/platform/projects?limit=100&page=%d", 1+i*7%pages), nil)
		if err != nil {
			return 0, err
		}
		if a.status != 200 {
			return 0, fmt.Errorf("page %d: status %d: %s", i, a.status, a.body)
		}
	}
	return listPages, nil
}

// speedOfStarts starts each build on the store that it has left, and reads its memory once it is ready.
func (b *bench) speedOfStarts(ctx context.Context, rep *report, here, base *build) error {
	b.say("a start")
	starting := func(side *build) *turn {
		return newTurn(side.name, func(ctx context.Context, t *turn) error {
			side.server.stop()
			if err := b.startBuild(ctx, side); err != nil {
				return err
			}
			cpu, err1 := processCPU(side.server.pid)
			mem, err2 := side.server.memory()
			t.add(cpuEach, ms(cpu))
			t.add("memory", mem.now)
			return errors.Join(err1, err2)
		})
	}
	ours, theirs := starting(here), starting(base)
	if err := b.alternate(ctx, ours, theirs); err != nil {
		return err
	}
	rep.add(paired("a start with an up-to-date store: CPU", "ms", ours.figures[cpuEach], theirs.figures[cpuEach]),
		paired("memory after the start", "MiB", ours.figures["memory"], theirs.figures["memory"]))
	return nil
}

func binarySizes(here, base *build) (row, error) {
	ours, err1 := os.Stat(here.binary)
	theirs, err2 := os.Stat(base.binary)
	if err := errors.Join(err1, err2); err != nil {
		return row{}, err
	}
	return comparedOnce("size of the binary", "MiB", mib(ours.Size()), mib(theirs.Size()), "base").ratioAtMost(mostSlower),
		nil
}

// paired compares figures of the same rounds. Its ratio is the median of the rounds' ratios with its 90 % interval: a
// build that is as fast has a ratio below it in at most one of twenty comparisons.
func paired(name, unit string, figures, baselines []float64) row {
	r := compared(name, unit, figures, baselines, "base")
	s := benchmath.AssumeNothing.Summary(sampleOf(ratios(figures, baselines)), speedConfidence)
	r.Ratio = &spread{Median: s.Center, Low: s.Lo, High: s.Hi}
	r.Goal = &goal{OfRatio: true, Bound: mostSlower, Met: s.Center <= mostSlower || s.Lo <= 1}
	return r
}

// checkSpeed reports what is wrong with the flags of speed.
func (o *options) checkSpeed() error {
	if o.speed.base == "" {
		return errors.New("-base must name the binary to compare with")
	}
	for _, path := range []*string{&o.speed.base, &o.binary} {
		if *path == "" {
			continue
		}
		abs, err := filepath.Abs(*path)
		if err == nil {
			_, err = os.Stat(abs)
		}
		if err != nil {
			return err
		}
		*path = abs
	}
	if o.rounds < leastRounds || o.round < time.Millisecond {
		return fmt.Errorf("-rounds must be at least %d, and -round at least 1ms", leastRounds)
	}
	return nil
}
