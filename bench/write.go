package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"fingerpost/bench/chart"
)

// runWrite measures durable writes against a bare program, and resolve during writes.
func runWrite(ctx context.Context, b *bench) (rep *report, err error) {
	if err := b.checkWrite(); err != nil {
		return nil, err
	}
	ours, bare, done, err := b.writeSides(ctx, b.corpus)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	rep, err = b.againstBare(ctx, ours, bare)
	if err == nil {
		err = b.resolveWhileWriting(ctx, ours, rep)
	}
	return rep, err
}

// checkWrite is options.check for the flags of this command.
func (b *bench) checkWrite() error {
	if b.corpus.Projects < b.load.connections {
		return usageError{fmt.Errorf("-projects is %d, it must be at least -connections (%d): each client writes files of its own", b.corpus.Projects, b.load.connections)}
	}
	return nil
}

// writeSides starts fingerpost on a corpus that may be written to, and prepares the bare program on one like it. done
// ends both and writes the generated files again.
func (b *bench) writeSides(ctx context.Context, p corpusParams) (ours *servedSide, bare *writeSide, done func() error, err error) {
	ours, stop, err := b.servedWrites(ctx, p)
	if err != nil {
		return nil, nil, nil, err
	}
	bare, leave, err := b.bareWrites(p)
	if err != nil {
		return nil, nil, nil, errors.Join(err, stop())
	}
	return ours, bare, func() error { return errors.Join(leave(), stop()) }, nil
}

// A servedSide is a fingerpost that receives writes.
type servedSide struct {
	writeSide
	server *server
	corpus *corpus
}

func (b *bench) servedWrites(ctx context.Context, p corpusParams) (*servedSide, func() error, error) {
	p.Writes = true
	name := "write-" + p.String()
	b.say("corpus: %d projects, %d domains, to be written to", p.Projects, p.Domains)
	c, err := openCorpus(filepath.Join(b.work, name), p)
	if err != nil {
		return nil, nil, err
	}
	s, err := b.fingerpost(ctx, name, c.config, b.cacheFlags()...)
	if err != nil {
		return nil, nil, err
	}
	side, restore, err := newServedSide(s, c)
	if err != nil {
		s.stop()
		return nil, nil, err
	}
	return side, func() error {
		s.stop() // before the files are restored, which it need not follow
		return restore()
	}, nil
}

func newServedSide(s *server, c *corpus) (side *servedSide, restore func() error, err error) {
	files, err := toWrite(c)
	if err != nil {
		return nil, nil, err
	}
	side = &servedSide{server: s, corpus: c}
	side.writeSide = writeSide{name: s.name, pid: s.pid, span: c.Projects, files: files,
		writer: func() (writer, error) { return servedWriter(s, c) }}
	return side, files.restore, nil
}

func (b *bench) bareWrites(p corpusParams) (*writeSide, func() error, error) {
	b.say("the same for the bare program")
	c, err := openCorpus(filepath.Join(b.work, "bare-"+p.String()), p)
	if err != nil {
		return nil, nil, err
	}
	files, err := toWrite(c)
	if err != nil {
		return nil, nil, err
	}
	program, err := newBareProgram(c)
	if err != nil {
		return nil, nil, err
	}
	side := &writeSide{name: "bare program", pid: os.Getpid(), span: c.Projects, files: files, writer: program.writer}
	return side, func() error { return errors.Join(program.close(), files.restore()) }, nil
}

// toWrite marks a corpus, until it is restored.
func toWrite(c *corpus) (*written, error) {
	if err := c.markDirty(); err != nil {
		return nil, fmt.Errorf("mark the corpus: %w", err)
	}
	files := &written{editor: editor{corpus: c, touched: map[int]bool{}}}
	files.last.Store(int64(c.Revision))
	return files, nil
}

// againstBare alternates fingerpost and the bare program, for each number of clients.
func (b *bench) againstBare(ctx context.Context, ours *servedSide, bare *writeSide) (*report, error) {
	c := ours.corpus
	disk, err := fileSystem(c.config)
	if err != nil {
		return nil, err
	}
	rep := &report{Parameters: b.parameters(c, map[string]any{
		"fileBytes": len(c.file(0, 0)), "filesPerClient": filesPerClient, "writeRate": b.writeRate, "fileSystem": disk, "clients": b.clients.String(),
	})}
	syncDisks()
	rates := chart.Chart{Name: "rate", Title: "Durable writes against clients", X: chart.Axis{Label: "clients", Scale: chart.Log}, Y: chart.Axis{Label: "writes/s"},
		Lines: []chart.Line{{Name: ours.name}, {Name: bare.name}}}
	p99 := chart.Chart{Name: "p99", Title: "p99 of durable writes against clients", X: rates.X, Y: chart.Axis{Label: "ms", Scale: chart.Log},
		Lines: []chart.Line{{Name: ours.name}, {Name: bare.name}}}
	for _, clients := range b.clientCounts() {
		f, err := b.turns(ctx, clients, &ours.writeSide, bare)
		if err != nil {
			return nil, err
		}
		for i := range f {
			rates.Lines[i].Points = append(rates.Lines[i].Points, spreadOf(f[i].rates).at(float64(clients)))
			p99.Lines[i].Points = append(p99.Lines[i].Points, spreadOf(f[i].p99).at(float64(clients)))
		}
		we, they := f[0], f[1]
		name := func(what string) string { return fmt.Sprintf("%d at once: %s", clients, what) }
		rate := compared(name("durable writes"), "writes/s", we.rates, they.rates, bare.name)
		p50 := compared(name("latency p50"), "ms", we.p50, they.p50, bare.name)
		switch clients {
		case 1:
			p50 = p50.ratioAtMost(4)
		case b.load.connections:
			rate = rate.ratioAtLeast(0.3)
		}
		rep.add(rate, p50,
			compared(name("latency p99"), "ms", we.p99, they.p99, bare.name),
			compared(name("CPU"), "ms/write", we.cpu, they.cpu, bare.name))
	}
	rep.Charts = append(rep.Charts, rates, p99)
	mem, err := ours.server.memory()
	if err != nil {
		return nil, err
	}
	rep.add(alone("peak memory", "MiB", mib(mem.peak)))
	rep.note("A write is PUT /api/platform/projects/{id} with a new description; every answer was 200 and had it.")
	rep.note("The bare program has as many workers. Each write: temporary file of the same size, fsync, exchange, fsync of the folder, "+
		"removal of the old content, and a Pebble batch of %d bytes without sync.", recordBytes)
	if disk == fsTmpfs {
		rep.note("The work folder lies in memory (tmpfs), where fsync costs nothing: name a folder on a disk by -work.")
	}
	return rep, nil
}

// clientCounts returns -clients and -connections in ascending order, up to the number for which each client has a file
// of its own.
func (b *bench) clientCounts() []int {
	counts := append(slices.Clone(b.clients), b.load.connections)
	slices.Sort(counts)
	return slices.DeleteFunc(slices.Compact(counts), func(n int) bool { return n > b.corpus.Projects })
}

const (
	pacedClients = 8  // share the writes during resolve
	pacedFiles   = 64 // written in turn: popular ones
)

// resolveWhileWriting asks the same server at full speed, alternating between rounds without writes and rounds with
// writes at a constant rate.
func (b *bench) resolveWhileWriting(ctx context.Context, ours *servedSide, rep *report) error {
	c := ours.corpus
	schedule := zipfSchedule(c.Domains, b.load.zipf, c.Seed)
	projects := muchAsked(schedule, c.perProject())
	own := deal(projects, min(pacedClients, len(projects)))
	quiet := &pacedTurn{name: "resolve", asked: known(ours.server, c, schedule)}
	busy := &pacedTurn{name: fmt.Sprintf("with %v writes a second", b.writeRate), asked: known(ours.server, c, schedule), by: &ours.writeSide}
	turns := []*pacedTurn{quiet, busy}
	b.say("warming up")
	if err := b.warm(ctx, quiet.asked, b.load.warmUp); err != nil {
		return err
	}
	for i := range b.load.rounds {
		line := fmt.Sprintf("round %d of %d:", i+1, b.load.rounds)
		for j := range turns {
			t := turns[(i+j)%len(turns)]
			if err := b.measureWhileWriting(ctx, t, own); err != nil {
				return err
			}
			line += fmt.Sprintf("  %s %.0f/s", t.name, t.asked.rates[i])
		}
		b.say("%s", line)
	}
	p := busy.writes.percentiles(0.5, 0.99)
	rep.add(
		compared(fmt.Sprintf("resolve while %v writes a second come in", b.writeRate), "requests/s", busy.asked.rates, quiet.asked.rates, "without").ratioAtLeast(0.75),
		compared("server CPU, the writes' included", "µs/request", busy.asked.cpu, quiet.asked.cpu, "without"),
		alone("writes meanwhile", "writes/s", busy.writes.perSecond()).atLeast(0.95*b.writeRate),
		alone("latency p50 of the writes", "ms", ms(p[0])),
		alone("latency p99 of the writes", "ms", ms(p[1])),
	)
	rep.note("Meanwhile %d much-asked projects are written by turns; a write's latency counts from when it was due.", len(projects))
	return nil
}

// A pacedTurn measures resolve, with or without writes at a constant rate.
type pacedTurn struct {
	name   string
	asked  *side
	by     *writeSide // nil: no writes
	writes writeResult
}

// measureWhileWriting is measureRound for a turn, and adds the turn's writes to those of earlier rounds.
func (b *bench) measureWhileWriting(ctx context.Context, t *pacedTurn, own [][]int) error {
	if t.by == nil {
		return b.measureRound(ctx, t.asked)
	}
	writing, stop := context.WithCancel(ctx)
	defer stop()
	var res *writeResult
	var writeErr error
	done := make(chan struct{})
	go func() {
		defer close(done)
		res, writeErr = t.by.write(writing, own, time.Duration(float64(time.Second)/b.writeRate))
	}()
	err := b.measureRound(ctx, t.asked)
	stop()
	<-done
	if err := errors.Join(err, writeErr); err != nil {
		return err
	}
	t.writes.elapsed += res.elapsed
	t.writes.merge(res.latencies)
	return nil
}

// muchAsked returns the first projects of a schedule, mostly popular ones. Each is there once, because the answer to a
// write is known only if no other client writes the same.
func muchAsked(schedule []uint32, perProject int) (projects []int) {
	seen := map[int]bool{}
	for _, name := range schedule {
		project := int(name) / perProject
		if !seen[project] {
			seen[project] = true
			projects = append(projects, project)
		}
		if len(projects) == pacedFiles {
			break
		}
	}
	return projects
}
