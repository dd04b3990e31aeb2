package configsrc

import (
	"runtime"
	"sync"
	"time"
)

// A pacer spreads bulk work over time, so that resolve keeps its latency meanwhile: after each small piece it rests twice
// as long as the piece took. That leaves most of a core free, and leaves more when the machine is busy, since the piece
// takes longer then. Small pieces with small pauses keep the tail short; larger pieces do not, whatever their total.
type pacer struct {
	on     bool
	mu     sync.Mutex    // guards what follows: where a disk fails, who has given up on it may still be at work beside us
	from   time.Time     // when the present piece began
	rested time.Duration // so far
}

// pace begins bulk work of so many files. Before the service is ready, and for a few files, it does not rest.
func (s *Source) pace(files int) *pacer {
	return &pacer{on: files > bulk && s.live.Load(), from: time.Now()}
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
	time.Sleep(min(2*ended.Sub(p.from), longRest))
	p.from = time.Now()
	p.rested += p.from.Sub(ended)
}

const (
	bulk     = 256              // more files than that are bulk work
	longRest = time.Millisecond // at most: a piece that took longer was kept waiting itself
)

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
