package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sys/unix"

	"fingerpost/bench/wire"
)

// A side does the work that a measurement compares: fingerpost or a baseline.
type side struct {
	name   string
	pid    int // whose CPU time is counted
	worker func(i int) worker
	ops    string // where the cache's counters are read; "": it has none
}

// A worker does one operation after the other. A wrong result is an error, which voids the figures. Not safe for
// concurrent use.
type worker struct {
	do    func() error
	close func()
}

// A load is one phase of work. It ends with its duration, its count or the context, whichever comes first and is set.
type load struct {
	*side
	workers  int
	duration time.Duration
	count    int
	// operations a second, each at a random moment of its interval; 0: a worker's next begins when one has ended
	rate float64
}

// An outcome is what a load has done. With a rate, latencies count from when an operation was due.
type outcome struct {
	elapsed time.Duration
	latencies
}

func (o *outcome) perSecond() float64 { return float64(len(o.latencies)) / o.elapsed.Seconds() }

// run does the work, and waits for outstanding operations. The end of ctx is no error.
func (l load) run(ctx context.Context) (*outcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if l.duration > 0 {
		defer time.AfterFunc(l.duration, cancel).Stop()
	}
	workers := make([]worker, l.workers)
	for i := range workers {
		workers[i] = l.worker(i)
		defer workers[i].close()
	}
	began := time.Now()
	var due chan time.Duration
	if l.rate > 0 {
		due = make(chan time.Duration, l.workers)
		go l.pace(ctx, began, due)
	}
	var begun atomic.Int64
	var wg sync.WaitGroup
	took, errs := make([]latencies, l.workers), make([]error, l.workers)
	for i, w := range workers {
		wg.Go(func() {
			own := make(latencies, 0, 1<<12)
			for errs[i] == nil && ctx.Err() == nil {
				from, ok := time.Since(began), true
				if due != nil {
					from, ok = <-due
				}
				if !ok || l.count > 0 && begun.Add(1) > int64(l.count) {
					break
				}
				if errs[i] = w.do(); errs[i] != nil {
					cancel()
				}
				own = append(own, time.Since(began)-from)
			}
			took[i] = own
		})
	}
	wg.Wait()
	out := &outcome{elapsed: time.Since(began)}
	for _, own := range took {
		out.latencies = append(out.latencies, own...)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("%s: %w", l.name, err)
	}
	return out, nil
}

// pace tells when operations are due until ctx ends. It sleeps in the kernel: the runtime's timers may be a millisecond
// late, which would count as the server's latency.
func (l load) pace(ctx context.Context, began time.Time, due chan<- time.Duration) {
	defer close(due)
	for i := 0; ; i++ {
		at := time.Duration((float64(i) + rand.Float64()) / l.rate * float64(time.Second))
		for wait := at - time.Since(began); wait > 0; wait = at - time.Since(began) { // a signal ends it early
			ts := unix.NsecToTimespec(int64(wait))
			_ = unix.Nanosleep(&ts, nil)
		}
		select {
		case due <- at:
		case <-ctx.Done():
			return
		}
	}
}

// while runs a load as long as f runs.
func (l load) while(ctx context.Context, f func() error) (*outcome, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var out *outcome
	var err error
	var running sync.WaitGroup
	running.Go(func() { out, err = l.run(ctx) })
	errF := f()
	stop()
	running.Wait()
	return out, errors.Join(errF, err)
}

// A question is what a worker asks about names of a corpus; it may keep what it needs from the request to the answer.
type question struct {
	ask   func(r *fasthttp.Request, name int)
	judge func(a wire.Answer, name int) error
}

// asks is a side whose workers ask a server about the names of a schedule, in its order, again and again.
func asks(s *server, schedule []uint32, newQuestion func() question) *side {
	var next atomic.Int64
	return &side{name: s.name, pid: s.pid, ops: s.ops, worker: func(int) worker {
		c, q := wire.NewClient(s.addr), newQuestion()
		return worker{close: c.Close, do: func() error {
			name := int(schedule[int(next.Add(1)-1)%len(schedule)])
			q.ask(&c.Req, name)
			a, err := c.Exchange()
			if err == nil {
				err = q.judge(a, name)
			}
			return err
		}}
	}}
}

// resolves is a side that resolves names of a corpus, and must know them.
func resolves(s *server, c *corpus, schedule []uint32) *side {
	return asks(s, schedule, c.resolving)
}

// resolving is the question of resolve. The answer must be about the right project.
func (c *corpus) resolving() question {
	var path []byte
	return question{
		ask: func(r *fasthttp.Request, name int) {
			path = c.appendHost(append(path[:0], wire.ResolvePath...), name)
			r.SetRequestURIBytes(path)
			r.Header.Set(wire.KeyField, c.key)
		},
		judge: func(a wire.Answer, name int) error {
			if slug := c.slugs[name/c.perProject()]; a.Status != 200 || !wire.HasSlug(a.Body, slug) {
				return fmt.Errorf("asked for %s: status %d: %s", slug, a.Status, a.Body)
			}
			return nil
		},
	}
}

// newest is the question of resolve, and the answer must not be torn, nor older than one that came before the request.
// seen has the newest revision of each project in an answer so far.
func (c *corpus) newest(seen []atomic.Int32) question {
	q := c.resolving()
	var least int32
	return question{
		ask: func(r *fasthttp.Request, name int) {
			least = seen[name/c.perProject()].Load()
			q.ask(r, name)
		},
		judge: func(a wire.Answer, name int) error {
			if err := q.judge(a, name); err != nil {
				return err
			}
			got, ok := wire.RevisionOf(a.Body)
			if !ok || int32(got) < least {
				return fmt.Errorf("revision %06d was answered before; a torn or older answer: %s", least, a.Body)
			}
			for newest := &seen[name/c.perProject()]; ; {
				if now := newest.Load(); now >= int32(got) || newest.CompareAndSwap(now, int32(got)) {
					return nil
				}
			}
		},
	}
}
