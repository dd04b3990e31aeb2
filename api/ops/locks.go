package ops

import (
	"net/http"
	"net/http/pprof"
	"runtime"
	"sync"
)

const (
	mutexFraction   = 5      // of that many waits for a lock one is noted
	blockNanosecond = 10_000 // a wait of that length is noted, shorter ones in proportion
)

// lockProfiles turns the profiles of waiting on while one is taken, and off after the last: they cost time at each wait
// for a lock, and a server that has to be started anew for a profile shows other waits than the one in trouble.
//
// The runtime dates the waits for a mutex by the head of its queue: a mutex whose queue has not been empty for a moment
// since before the profile was turned on is missing from "mutex". "block" shows who waits for it.
type lockProfiles struct {
	mu     sync.Mutex
	takers int
}

// handler serves the profile "mutex" or "block" of as many seconds as are asked for.
func (l *lockProfiles) handler(name string) http.HandlerFunc {
	profile := pprof.Handler(name)
	return func(w http.ResponseWriter, r *http.Request) {
		l.take(1)
		defer l.take(-1)
		profile.ServeHTTP(w, r)
	}
}

func (l *lockProfiles) take(n int) {
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
