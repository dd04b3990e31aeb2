package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"
)

// writeOptions are the flags of write.
type writeOptions struct{ git bool }

func (o *writeOptions) register(f *flag.FlagSet) {
	f.BoolVar(&o.git, "git", o.git, "write: measure serve --git, too")
}

// writeRate is how many writes a second come in while resolve is asked.
const writeRate = 50

// runWrite measures durable writes against a bare program, and resolve during writes.
func runWrite(ctx context.Context, b *bench) (*report, error) {
	p := b.corpus
	p.Writes = true
	c, err := b.openCorpus("write-", p)
	if err != nil {
		return nil, err
	}
	e, err := b.edit(c) // before the server starts: it need not follow when the files are restored
	if err != nil {
		return nil, err
	}
	s, err := b.fingerpost(ctx, "write-"+p.String(), c.config)
	if err != nil {
		return nil, err
	}
	bare, bareFiles, err := b.newBareProgram()
	if err != nil {
		return nil, err
	}
	ours := &writeSide{name: s.name, pid: s.pid, last: &e.last,
		writer: func() (writer, error) { return servedWriter(s, c) }}
	theirs := &writeSide{name: "bare program", pid: os.Getpid(), last: &bareFiles.last, writer: bare.writer}
	disk := fileSystem(c.config)
	rep := &report{Parameters: b.parameters(c, map[string]any{
		"fileBytes": len(c.file(0, 0)), "filesPerClient": filesPerClient, "writeRate": writeRate, "fileSystem": disk,
	})}
	syncDisks()
	for _, clients := range b.clientCounts() {
		b.say("%d clients", clients)
		own := ownFiles(c.Projects, clients)
		e.touch(own)
		bareFiles.touch(own)
		turns := []*turn{b.writing(ours, own, 0), b.writing(theirs, own, 0)}
		if err := b.lead(ctx, turns...); err != nil {
			return nil, err
		}
		if err := b.alternate(ctx, turns...); err != nil {
			return nil, err
		}
		name := func(what string) string { return fmt.Sprintf("%d at once: %s", clients, what) }
		rate := turns[0].against(turns[1], perSecond, name("durable writes"), "writes/s")
		p50 := turns[0].against(turns[1], "p50", name("latency p50"), "ms")
		switch clients {
		case 1:
			p50 = p50.ratioAtMost(4)
		case b.connections:
			rate = rate.ratioAtLeast(0.3)
		}
		rep.add(rate, p50, turns[0].against(turns[1], "p99", name("latency p99"), "ms"),
			turns[0].against(turns[1], cpuEach, name("CPU"), "ms/write"))
	}
	mem, err := s.memory()
	if err != nil {
		return nil, err
	}
	rep.add(alone("peak memory", "MiB", mem.peak))
	rep.note("A write is PUT /api/platform/projects/{id} with a new description; every answer was 200 and had it.")
	rep.note("The bare program has as many workers. Each write: temporary file of the same size, fsync, exchange, "+
		"fsync of the folder, removal of the old content, and a Pebble batch of %d bytes without sync.", recordBytes)
	rep.noteTmpfs(disk)
	if b.write.git {
		if err := b.writeWithGit(ctx, ours, c, rep); err != nil {
			return nil, err
		}
	}
	return rep, b.resolveWhileWriting(ctx, s, e, ours, rep)
}

const fsTmpfs = "tmpfs"

// noteTmpfs warns if the disk is none.
func (r *report) noteTmpfs(fileSystem string) {
	if fileSystem == fsTmpfs {
		r.note("The work folder lies in memory (tmpfs), where fsync costs nothing: name a folder on a disk by -work.")
	}
}

// clientCounts returns 1, 4, 16 and -connections in ascending order, up to the number for which each client has a file
// of its own.
func (b *bench) clientCounts() []int {
	counts := []int{1, 4, 16, b.connections}
	slices.Sort(counts)
	return slices.DeleteFunc(slices.Compact(counts), func(n int) bool { return n > b.corpus.Projects })
}

const (
	pacedClients = 8  // share the writes during resolve
	pacedFiles   = 64 // written in turn: popular ones
)

// resolveWhileWriting asks the same server at full speed, alternating between rounds without writes and rounds with
// writes at a constant rate.
func (b *bench) resolveWhileWriting(ctx context.Context, s *server, e *editor, ours *writeSide, rep *report) error {
	c := e.corpus
	schedule := zipfSchedule(c.Domains)
	projects := muchAsked(schedule, c.perProject())
	own := deal(projects, min(pacedClients, len(projects)))
	e.touch(own)
	quiet := b.fullSpeed("without", known(s, c, schedule))
	var writes writeResult
	busy := newTurn(fmt.Sprintf("with %v writes a second", writeRate), func(ctx context.Context, t *turn) error {
		writing, stop := context.WithCancel(ctx)
		defer stop()
		var res *writeResult
		var writeErr error
		done := make(chan struct{})
		go func() {
			defer close(done)
			res, writeErr = ours.write(writing, own, every(writeRate), 0)
		}()
		err := quiet.measure(ctx, t)
		stop()
		<-done
		if err := errors.Join(err, writeErr); err != nil {
			return err
		}
		writes.elapsed += res.elapsed
		writes.merge(res.latencies)
		return nil
	})
	b.say("warming up")
	if err := b.warm(ctx, known(s, c, schedule)); err != nil {
		return err
	}
	if err := b.alternate(ctx, quiet, busy); err != nil {
		return err
	}
	p := writes.percentiles(0.5, 0.99)
	rep.add(
		busy.against(quiet, perSecond, fmt.Sprintf("resolve while %v writes a second come in", writeRate), "requests/s").
			ratioAtLeast(0.75),
		busy.against(quiet, cpuEach, "server CPU, the writes' included", "µs/request"),
		alone("writes meanwhile", "writes/s", writes.perSecond()).atLeast(0.95*writeRate),
		alone("latency p50 of the writes", "ms", ms(p[0])),
		alone("latency p99 of the writes", "ms", ms(p[1])),
	)
	rep.note("Meanwhile %d much-asked projects are written in turn; a write's latency counts from when it was due.",
		len(projects))
	return nil
}

// every returns the time between two writes at a rate.
func every(rate float64) time.Duration { return time.Duration(float64(time.Second) / rate) }

// muchAsked returns the first projects of a schedule, mostly popular ones. Each is there once, because the answer to a
// write is known only if no other client writes the same.
func muchAsked(schedule []uint32, perProject int) (projects []int) {
	for _, name := range schedule {
		project := int(name) / perProject
		if !slices.Contains(projects, project) {
			projects = append(projects, project)
		}
		if len(projects) == pacedFiles {
			break
		}
	}
	return projects
}
