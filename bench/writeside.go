package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"fingerpost/resolver/catalog"
)

// A writeSide makes durable writes, or sends mail: fingerpost, or a baseline.
type writeSide struct {
	name   string
	pid    int           // whose CPU time is counted
	last   *atomic.Int64 // the last number that a write has: the revision of a project, or the number of a mail
	writer func() (writer, error)
	// waits for what the writes have left to do, which counts as their time; nil: nothing
	settle func(ctx context.Context) error
}

// A writer makes durable writes one after the other. Not safe for concurrent use.
type writer struct {
	write func(project, number int) error
	close func()
}

// servedWriter writes over one keep-alive connection. An answer other than 200 with the new value is an error.
func servedWriter(s *server, c *corpus) (writer, error) {
	cl := newClient(s.addr, c.key)
	write := func(project, revision int) error {
		slug := c.slugs[project]
		field := fmt.Appendf(nil, `"description":%q`, description(slug, revision))
		a, err := cl.call("PUT", projectURL(slug), fmt.Appendf(nil, "{%s}", field))
		if err != nil {
			return err
		}
		switch {
		case a.status != 200:
			return fmt.Errorf("write %s: status %d: %s", slug, a.status, a.body)
		case !hasSlug(a.body, slug) || !bytes.Contains(a.body, field):
			return fmt.Errorf("write %s: the answer has not %s: %s", slug, field, a.body)
		}
		return nil
	}
	return writer{write: write, close: cl.close}, nil
}

// projectURL returns the path of a project whose file has no uuid.
func projectURL(slug string) string {
	return fmt.Sprintf("/api/platform/projects/%d", catalog.DeriveID(catalog.KindProject, catalog.DeriveProjectUUID(slug)))
}

// filesPerClient is how many files a client writes, one after the other.
const filesPerClient = 16

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

// A writeResult is the result of a phase of writes.
type writeResult struct {
	elapsed time.Duration
	latencies
}

func (r *writeResult) perSecond() float64 { return float64(r.count()) / r.elapsed.Seconds() }

// write opens a client for each list of projects, which writes them in turn until ctx ends, and waits for the
// outstanding writes. A round other than 0 ends it that long after all clients were open. If every is 0, each client
// writes as fast as its writes complete. Otherwise all clients together make one write per every, and latency counts
// from the time at which it is due.
func (s *writeSide) write(ctx context.Context, own [][]int, every, round time.Duration) (*writeResult, error) {
	writers := make([]writer, len(own))
	for i := range own {
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
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if round > 0 {
		time.AfterFunc(round, cancel)
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
				number := int(s.last.Add(1))
				if errs[i] = writers[i].write(projects[n%len(projects)], number); errs[i] != nil {
					cancel()
					return
				}
				took[i].add(time.Since(began) - due)
			}
		})
	}
	wg.Wait()
	if s.settle != nil {
		errs = append(errs, s.settle(context.WithoutCancel(ctx)))
	}
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

// writing is a turn of a side, with a client for each list of projects; every is as in write.
func (b *bench) writing(s *writeSide, own [][]int, every time.Duration) *turn {
	return newTurn(s.name, func(ctx context.Context, t *turn) error {
		before, err := processCPU(s.pid)
		if err != nil {
			return err
		}
		res, err := s.write(ctx, own, every, b.round)
		if err != nil {
			return err
		}
		if res.count() == 0 {
			return fmt.Errorf("write to %s: no write within %v", s.name, res.elapsed)
		}
		after, err := processCPU(s.pid)
		t.add(perSecond, res.perSecond())
		t.add(cpuEach, ms(after-before)/float64(res.count()))
		t.addTails(res.latencies)
		return err
	})
}
