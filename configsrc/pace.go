package configsrc

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// A pacer spreads bulk work over time, so that resolve keeps its latency meanwhile: after each small piece it rests for a
// multiple of the time that the piece took, twice as long where somebody waits for the work. That leaves most of a core
// free, and leaves more when the machine is busy, since the piece takes longer then. Small pieces with small pauses keep
// the tail short; larger pieces do not, whatever their total.
type pacer struct {
	on     bool
	times  time.Duration   // a rest is so many times as long as the piece
	most   time.Duration   // and at most so long: a piece that took longer was kept waiting itself
	ctx    context.Context // ends the rests
	began  time.Time
	mu     sync.Mutex    // guards what follows: where a disk fails, who has given up on it may still be at work beside us
	from   time.Time     // when the present piece began
	rested time.Duration // so far
}

// pace begins bulk work of so many files. Before the service is ready, and for a few files, it does not rest.
func (s *Source) pace(files int) *pacer {
	now := time.Now()
	return &pacer{on: files > bulk && s.live.Load(), times: 2, most: time.Millisecond, ctx: context.Background(), began: now, from: now}
}

// sweepPace begins a sweep, which goes on all the time and so takes next to nothing of a core at any.
func (s *Source) sweepPace(ctx context.Context) *pacer {
	s.known.RLock()
	p := s.pace(len(s.table.files))
	s.known.RUnlock()
	p.times, p.most, p.ctx = sweepAtMost-1, time.Second, ctx
	return p
}

// worked is the time since the beginning without the rests.
func (p *pacer) worked() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.began) - p.rested
}

// begin begins a piece anew, after something that was no work of ours.
func (p *pacer) begin() {
	p.mu.Lock()
	p.from = time.Now()
	p.mu.Unlock()
}

// rest ends a piece and begins the next.
func (p *pacer) rest() {
	if !p.on {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	ended := time.Now()
	timer := time.NewTimer(min(p.times*ended.Sub(p.from), p.most))
	select {
	case <-timer.C:
	case <-p.ctx.Done():
		timer.Stop()
	}
	p.from = time.Now()
	p.rested += p.from.Sub(ended)
}

// bulk is how many files are no bulk work yet.
const bulk = 256

// parallel runs f(0) … f(n-1) on all cores.
func parallel(n int, f func(i int)) {
	workers := min(runtime.GOMAXPROCS(0), n)
	var next sync.Mutex
	at := 0
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for {
				next.Lock()
				from := at
				at = min(at+16, n)
				to := at
				next.Unlock()
				if from == to {
					return
				}
				for i := from; i < to; i++ {
					f(i)
				}
			}
		})
	}
	wg.Wait()
}
