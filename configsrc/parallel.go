package configsrc

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// parallel calls f(0) … f(n-1) on several cores and returns when all calls have returned. While the Sink serves
// answers, one core stays free of it, if there is more than one: otherwise a request waits for the scheduler to
// interrupt a decode, which takes 10 ms.
func (s *Source) parallel(n int, f func(i int)) {
	workers := runtime.GOMAXPROCS(0)
	if s.live.Load() {
		workers = max(1, workers-1)
	}
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(workers, n) {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				f(int(i))
			}
		})
	}
	all.Wait()
}
