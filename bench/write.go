package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"fingerpost/bench/machine"
	"fingerpost/bench/wire"
	"fingerpost/resolver/catalog"
)

const (
	writeRate      = 50 // writes a second that come in while resolve is asked
	pacedClients   = 8  // share them
	pacedFiles     = 64 // are written: popular ones
	filesPerClient = 16 // are written by a client at full speed, one after the other
)

// runWrite measures durable writes against a bare program, and resolve during writes.
func runWrite(ctx context.Context, b *bench) (*report, error) {
	c, err := b.openEdited("write-")
	if err != nil {
		return nil, err
	}
	s, err := b.fingerpost(ctx, "write-"+c.String(), c.config)
	if err != nil {
		return nil, err
	}
	bare, err := b.newBareProgram()
	if err != nil {
		return nil, err
	}
	disk := machine.FileSystem(c.config)
	rep := &report{Parameters: b.parameters(c, map[string]any{
		"fileBytes": len(c.file(0, 0)), "filesPerClient": filesPerClient, "writeRate": writeRate, "fileSystem": disk,
	})}
	unix.Sync() // so that no measured fsync pays for what was written before
	for _, clients := range b.clientCounts() {
		b.say("%d clients", clients)
		own := ownFiles(c.Projects, clients)
		ours, theirs := b.writing(served(s, c, own), clients), b.writing(bare.side(own), clients)
		if err := b.alternate(ctx, ours, theirs); err != nil {
			return nil, err
		}
		name := func(what string) string { return fmt.Sprintf("%d at once: %s", clients, what) }
		rate := ours.against(theirs, perSecond, name("durable writes"), "writes/s")
		p50 := ours.against(theirs, "p50", name("latency p50"), "ms")
		switch clients {
		case 1:
			p50 = p50.ratioAtMost(4)
		case b.connections:
			rate = rate.ratioAtLeast(0.3)
		}
		rep.add(rate, p50, ours.against(theirs, "p99", name("latency p99"), "ms"),
			ours.against(theirs, cpuEach, name("CPU"), "µs/write"))
	}
	mem, err := s.memory()
	if err != nil {
		return nil, err
	}
	rep.add(measured("peak memory", "MiB", mem.peak))
	rep.note("A write is PUT /api/platform/projects/{id} with a new description; every answer was 200 and had it.")
	rep.note("The bare program has as many workers. Each write: temporary file of the same size, fsync, exchange, "+
		"fsync of the folder, removal of the old content, and a Pebble batch of %d bytes without sync.", recordBytes)
	rep.noteTmpfs(disk)
	return rep, b.resolveWhileWriting(ctx, s, c, rep)
}

// noteTmpfs warns if the disk is none.
func (r *report) noteTmpfs(fileSystem string) {
	if fileSystem == machine.FsTmpfs {
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

// writing is the turn of a side as fast as its writes complete.
func (b *bench) writing(s *side, clients int) *turn {
	return b.turn(s.name, load{side: s, workers: clients})
}

// writes is a side with a worker for each list of projects, which writes them in turn. open returns a worker's write,
// and its end.
func writes(name string, pid int, c *corpus, own [][]int, open func() (write func(project, revision int) error,
	end func())) *side {
	return &side{name: name, pid: pid, worker: func(i int) worker {
		write, end := open()
		n := 0
		return worker{close: end, do: func() error {
			n++
			return write(own[i][n%len(own[i])], int(c.last.Add(1)))
		}}
	}}
}

// served writes through the API. An answer other than 200 with the new value is an error.
func served(s *server, c *corpus, own [][]int) *side {
	return writes(s.name, s.pid, c, own, func() (func(project, revision int) error, func()) {
		cl := wire.NewClient(s.addr, wire.KeyField, c.key)
		return func(project, revision int) error {
			slug := c.slugs[project]
			field := fmt.Appendf(nil, `"description":%q`, description(slug, revision))
			a, err := cl.Call("PUT", projectURL(slug), fmt.Appendf(nil, "{%s}", field))
			if err != nil {
				return err
			}
			if a.Status != 200 || !wire.HasSlug(a.Body, slug) || !bytes.Contains(a.Body, field) {
				return fmt.Errorf("write %s of %s: status %d: %s", field, slug, a.Status, a.Body)
			}
			return nil
		}, cl.Close
	})
}

// projectURL returns the path of a project whose file has no uuid.
func projectURL(slug string) string {
	return fmt.Sprintf("/api/platform/projects/%d", catalog.DeriveID(catalog.KindProject, catalog.DeriveProjectUUID(slug)))
}

// ownFiles gives each client its own files, spread evenly over all projects.
func ownFiles(projects, clients int) [][]int {
	all := make([]int, clients*min(filesPerClient, projects/clients))
	for i := range all {
		all[i] = i * projects / len(all)
	}
	return deal(all, clients)
}

// deal distributes projects to the clients in turn.
func deal(projects []int, clients int) [][]int {
	own := make([][]int, clients)
	for i, p := range projects {
		own[i%clients] = append(own[i%clients], p)
	}
	return own
}

// muchAsked returns the first n projects of a schedule, mostly popular ones. Each is there once, because the answer to
// a write is known only if no other client writes the same.
func muchAsked(schedule []uint32, perProject, n int) (projects []int) {
	for _, name := range schedule {
		project := int(name) / perProject
		if !slices.Contains(projects, project) {
			projects = append(projects, project)
		}
		if len(projects) == n {
			break
		}
	}
	return projects
}

// pacedWrites is a load of writes of popular projects at writeRate.
func pacedWrites(s *server, c *corpus) load {
	projects := muchAsked(c.zipf(), c.perProject(), pacedFiles)
	own := deal(projects, min(pacedClients, len(projects)))
	return load{side: served(s, c, own), workers: len(own), rate: writeRate}
}

// resolveWhileWriting asks the same server at full speed, alternating between rounds without writes and rounds with
// writes at a constant rate.
func (b *bench) resolveWhileWriting(ctx context.Context, s *server, c *corpus, rep *report) error {
	if err := b.fill(ctx, s, c, c.names()); err != nil {
		return err
	}
	quiet := b.fullSpeed(resolves(s, c, c.zipf()))
	quiet.name = "without"
	var all outcome
	busy := newTurn(fmt.Sprintf("with %v writes a second", writeRate), func(ctx context.Context, t *turn) error {
		out, err := pacedWrites(s, c).while(ctx, func() error { return quiet.measure(ctx, t) })
		if err == nil {
			all.elapsed += out.elapsed
			all.latencies = append(all.latencies, out.latencies...)
		}
		return err
	})
	if err := b.alternate(ctx, quiet, busy); err != nil {
		return err
	}
	p := all.percentiles(0.5, 0.99)
	rep.add(
		busy.against(quiet, perSecond, fmt.Sprintf("resolve while %v writes a second come in", writeRate), "requests/s").
			ratioAtLeast(0.75),
		busy.against(quiet, cpuEach, "server CPU, the writes' included", "µs/request"),
		measured("writes meanwhile", "writes/s", all.perSecond()).atLeast(0.95*writeRate),
		measured("latency p50 of the writes", "ms", ms(p[0])),
		measured("latency p99 of the writes", "ms", ms(p[1])),
	)
	rep.note("Meanwhile much-asked projects are written in turn; a write's latency counts from when it was due.")
	return nil
}
