package ops

import (
	"net/http"
	"net/http/pprof"
	"runtime"
	"sync"
)

const (
	mutexFraction   = 5      // one in 5 waits for a mutex is recorded
	blockNanosecond = 10_000 // waits from 10 µs on are recorded, shorter ones in proportion
)

// lockProfiles enables the runtime's mutex and block profiles while one is taken: they cost time at each wait, and a
// server in trouble cannot be restarted to enable them.
//
// The runtime counts waits for a mutex from the head of its queue: a mutex whose queue has never been empty since the
// profile began is missing from "mutex". "block" shows the goroutines that wait for it.
type lockProfiles struct {
	mu     sync.Mutex
	takers int
}

// handler serves the profile "mutex" or "block" over the seconds that the query names.
func (l *lockProfiles) handler(name string) http.HandlerFunc {
	profile := pprof.Handler(name)
	return func(w http.ResponseWriter, r *http.Request) {
		l.recordProfile(1)
		defer l.recordProfile(-1)
		profile.ServeHTTP(w, r)
	}
}

func (l *lockProfiles) recordProfile(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.takers
	l.takers += n
	switch {
	case was == 0:
		runtime.SetMutexProfileFraction(mutexFraction)
		runtime.SetBlockProfileRate(blockNanosecond)
	case l.takers == 0:
		runtime.SetMutexProfileFraction(0)
		runtime.SetBlockProfileRate(0)
	}
}
