package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fingerpost/resolver/catalog"
)

// A writeSide makes durable writes, or sends mail: fingerpost, or a baseline.
type writeSide struct {
	name   string
	pid    int // whose CPU time is counted
	span   int // the written files are spread evenly over the first span projects
	files  *written
	writer func() (writer, error)

	clients int                             // for a side that writes no files: this many clients with one project each; 0: as many as requested
	every   time.Duration                   // see write
	begin   func(ctx context.Context) error // prepares a round before the clock starts; may be nil
	check   func() error                    // checks the result of a round; may be nil
}

// written are the files of a corpus that writes change.
type written struct {
	editor
	last atomic.Int64 // the last revision that was used
}

// A writer makes durable writes one after the other. Not safe for concurrent use.
type writer struct {
	write func(project, revision int) error
	close func()
}

// servedWriter writes over one keep-alive connection. An answer other than 200 with the new value is an error.
func servedWriter(s *server, c *corpus) (writer, error) {
	cl, err := dial(s.addr, c.key)
	if err != nil {
		return writer{}, err
	}
	write := func(project, revision int) error {
		slug := c.slugs[project]
		field := fmt.Appendf(nil, `"description":%q`, description(slug, revision))
		a, err := cl.put(projectURL(slug), slices.Concat([]byte{'{'}, field, []byte{'}'}))
		if err != nil {
			return err
		}
		return judgeWritten(a, slug, field)
	}
	return writer{write: write, close: cl.close}, nil
}

// judgeWritten returns an error unless the answer shows the project with the field as it was sent.
func judgeWritten(a answer, slug string, field []byte) error {
	switch {
	case a.status != 200:
		return fmt.Errorf("write %s: status %d: %s", slug, a.status, a.body)
	case !hasSlug(a.body, slug) || !bytes.Contains(a.body, field):
		return fmt.Errorf("write %s: the answer has not %s: %s", slug, field, a.body)
	}
	return nil
}

// projectURL returns the path of a project whose file has no uuid.
func projectURL(slug string) string {
	return fmt.Sprintf("/api/platform/projects/%d", catalog.DeriveID(catalog.KindProject, catalog.DeriveProjectUUID(slug)))
}

// filesPerClient is how many files a client writes, one after the other.
const filesPerClient = 16

// own gives each client its own files.
func (s *writeSide) own(clients int) [][]int {
	if s.clients > 0 {
		return oneEach(s.clients)
	}
	each := min(filesPerClient, s.span/clients)
	projects := make([]int, clients*each)
	for i := range projects {
		projects[i] = i * s.span / len(projects)
	}
	return deal(projects, clients)
}

// oneEach gives each client project 0, for writes without files.
func oneEach(clients int) [][]int {
	own := make([][]int, clients)
	for i := range own {
		own[i] = []int{0}
	}
	return own
}

// deal distributes projects to the clients in turn.
func deal(projects []int, clients int) [][]int {
	own := make([][]int, clients)
	for i, p := range projects {
		own[i%clients] = append(own[i%clients], p)
	}
	return own
}

// A writeResult is the result of a phase of writes.
type writeResult struct {
	elapsed time.Duration
	latencies
}

func (r *writeResult) perSecond() float64 { return float64(r.count()) / r.elapsed.Seconds() }

// write starts a client for each list of projects, which writes them in turn until ctx ends, and waits for the
// outstanding writes. If every is 0, each client writes as fast as its writes complete. Otherwise all clients together
// make one write per every, and latency counts from the time at which it is due.
func (s *writeSide) write(ctx context.Context, own [][]int, every time.Duration) (*writeResult, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	writers := make([]writer, len(own))
	for i, projects := range own {
		for _, p := range projects {
			s.files.touched[p] = true
		}
		w, err := s.writer()
		if err != nil {
			return nil, err
		}
		defer w.close()
		writers[i] = w
	}
	took, errs := make([]latencies, len(own)), make([]error, len(own))
	for i := range took {
		took[i].reserve()
	}
	began := time.Now()
	var wg sync.WaitGroup
	for i, projects := range own {
		wg.Go(func() {
			for n := 0; ; n++ {
				due := time.Since(began)
				if every > 0 {
					due = time.Duration(n*len(own)+i) * every
					await(ctx, began.Add(due))
				}
				if ctx.Err() != nil {
					return
				}
				revision := int(s.files.last.Add(1))
				if errs[i] = writers[i].write(projects[n%len(projects)], revision); errs[i] != nil {
					cancel()
					return
				}
				took[i].add(time.Since(began) - due)
			}
		})
	}
	wg.Wait()
	res := &writeResult{elapsed: time.Since(began)}
	for _, l := range took {
		res.merge(l)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("write to %s: %w", s.name, err)
	}
	return res, nil
}

// await returns at the time, or when ctx ends.
func await(ctx context.Context, at time.Time) {
	t := time.NewTimer(time.Until(at))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// writeFigures are the figures of one side, one per round.
type writeFigures struct {
	rates    []float64 // writes a second
	p50, p99 []float64 // ms
	cpu      []float64 // ms of CPU time a write
}

// turns lets the sides write in rounds. Each round begins with another side. The first round of each side does not
// count.
func (b *bench) turns(ctx context.Context, clients int, sides ...*writeSide) ([]writeFigures, error) {
	figures := make([]writeFigures, len(sides))
	for i := -1; i < b.load.rounds; i++ {
		line := fmt.Sprintf("%d clients, round %d of %d:", clients, i+1, b.load.rounds)
		for j := range sides {
			k := (i + 1 + j) % len(sides)
			f := &figures[k]
			if i < 0 {
				f = new(writeFigures)
			}
			if err := b.writeRound(ctx, sides[k], clients, f); err != nil {
				return nil, err
			}
			line += fmt.Sprintf("  %s %.0f/s, p50 %.3f ms", sides[k].name, f.rates[max(0, i)], f.p50[max(0, i)])
		}
		if i >= 0 {
			b.say("%s", line)
		}
	}
	return figures, nil
}

// writeRound adds one round to a side's figures.
func (b *bench) writeRound(ctx context.Context, s *writeSide, clients int, f *writeFigures) error {
	if s.begin != nil {
		if err := s.begin(ctx); err != nil {
			return err
		}
	}
	before, err := processCPU(s.pid)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, b.load.round)
	defer cancel()
	res, err := s.write(limited, s.own(clients), s.every)
	if err = errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	if res.count() == 0 {
		return fmt.Errorf("write to %s: no write within %v", s.name, res.elapsed)
	}
	after, err := processCPU(s.pid)
	if err == nil && s.check != nil {
		err = s.check()
	}
	if err != nil {
		return err
	}
	p := res.percentiles(0.5, 0.99)
	f.rates = append(f.rates, res.perSecond())
	f.p50, f.p99 = append(f.p50, ms(p[0])), append(f.p99, ms(p[1]))
	f.cpu = append(f.cpu, ms(after-before)/float64(res.count()))
	return nil
}
