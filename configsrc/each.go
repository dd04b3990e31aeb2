package configsrc

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// fewFiles is a number of files whose decoding no request notices. each for more makes threads.
const fewFiles = 64

// each calls f(0) … f(n-1) on several cores and returns when all calls have returned. While answers are served, one
// core stays free of it, if there is more than one: otherwise a request waits for the scheduler to interrupt a decode,
// which takes 10 ms. Many calls then also run at a lower priority.
func each(n int, serving bool, f func(i int)) {
	workers, background := runtime.GOMAXPROCS(0), false
	if serving {
		workers, background = max(1, workers-1), n > fewFiles
	}
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(workers, n) {
		all.Go(func() {
			if background {
				yieldToAnswers()
			}
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				f(int(i))
			}
		})
	}
	all.Wait()
}
