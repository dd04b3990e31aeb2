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

	"fingerpost/bench/wire"
)

// speedCommand compares two builds. All leaves it out, because it needs a second binary.
const speedCommand = "speed"

var speed = command{speedCommand,
	"CPU of a hit, a save, a write, a page of a list and a start, size and memory, against the binary -base", runSpeed}

const (
	mostSlower      = 1.05 // the ratio from which on a build counts as slower, if the interval lies above 1
	speedConfidence = 0.90 // of the interval
	speedWriters    = 4
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
	server       *server
}

// runSpeed asks two builds to do the same work, one after the other in each round, and compares the CPU time of the
// server for each operation. It says which is slower only if the difference is beyond the noise of the rounds.
func runSpeed(ctx context.Context, b *bench) (*report, error) {
	if err := b.buildBinary(ctx); err != nil {
		return nil, err
	}
	here, base := &build{name: "here", binary: b.binary}, &build{name: "base", binary: b.speed.base}
	for _, one := range []*build{here, base} {
		var err error
		if one.corpus, err = b.openEdited("speed-" + one.name + "-"); err == nil {
			err = b.clearStore(one.store())
		}
		if err == nil {
			err = b.startBuild(ctx, one)
		}
		if err != nil {
			return nil, err
		}
	}
	rep := &report{Parameters: b.parameters(here.corpus, map[string]any{"serverCPU": b.speed.serverCPU})}
	for _, op := range []operation{
		{"a resolve hit", b.connections, func(one *build) *side {
			return resolves(one.server, one.corpus, one.corpus.zipf())
		}},
		{"a save", 1, func(one *build) *side { // it asks seldom, because the questions count, too
			return saves(one.server, one.corpus, savers()[0], func() { time.Sleep(5 * time.Millisecond) })
		}},
		{"an API write", speedWriters, func(one *build) *side {
			return served(one.server, one.corpus, ownFiles(one.corpus.Projects, speedWriters))
		}},
		{"a page of a list", 1, readsLists},
	} {
		b.say("%s", op.name)
		var turns []*turn
		for _, one := range []*build{here, base} {
			turns = append(turns, b.turn(one.name, load{side: op.of(one), workers: op.workers}))
		}
		if err := b.alternate(ctx, turns...); err != nil {
			return nil, err
		}
		rep.add(paired(op.name+": CPU of the server", "µs/request", turns[0].figures[cpuEach], turns[1].figures[cpuEach]))
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

func (one *build) store() string { return "speed-" + one.name }

func (b *bench) startBuild(ctx context.Context, one *build) (err error) {
	own := b.binary
	b.binary = one.binary
	defer func() { b.binary = own }()
	one.server, err = b.fingerpost(ctx, one.store(), one.corpus.config)
	return err
}

// An operation is work that both builds do in each round.
type operation struct {
	name    string
	workers int
	of      func(*build) *side
}

// readsLists reads pages of 100 projects.
func readsLists(one *build) *side {
	pages := max(1, one.corpus.Projects/100)
	return &side{name: "a page", pid: one.server.pid, worker: func(int) worker {
		cl, n := wire.NewClient(one.server.addr, wire.KeyField, one.corpus.key), 0
		return worker{close: cl.Close, do: func() error {
			n++
			_, err := cl.Must("GET", fmt.Sprintf("/api/platform/projects?limit=100&page=%d", 1+n*7%pages), nil)
			return err
		}}
	}}
}

// speedOfStarts starts each build on the store that it has left, and reads its memory once it is ready.
func (b *bench) speedOfStarts(ctx context.Context, rep *report, here, base *build) error {
	b.say("a start")
	starting := func(one *build) *turn {
		return newTurn(one.name, func(ctx context.Context, t *turn) error {
			one.server.stop()
			if err := b.startBuild(ctx, one); err != nil {
				return err
			}
			cpu, err1 := processCPU(one.server.pid)
			mem, err2 := one.server.memory()
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
	size := measured("size of the binary", "MiB", mib(ours.Size())).over("base", mib(theirs.Size()))
	return size.ratioAtMost(mostSlower), nil
}

// paired compares figures of the same rounds. Its ratio is the median of the rounds' ratios with its 90 % interval: a
// build that is as fast has a ratio below it in at most one of twenty comparisons.
func paired(name, unit string, figures, baselines []float64) row {
	r := measured(name, unit, figures...).over("base", baselines...)
	s := benchmath.AssumeNothing.Summary(sampleOf(r.Rounds.ratios()), speedConfidence)
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
