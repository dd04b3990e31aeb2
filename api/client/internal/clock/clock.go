// Package clock is the time of package tenant: the real one, or in tests one that jumps.
package clock

import (
	"net/http"
	"sync"
	"time"
)

// A Clock tells the time and runs functions later. Safe for concurrent use.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f in a goroutine of its own once d has passed, unless stop is called before.
	AfterFunc(d time.Duration, f func()) (stop func())
}

// Real is the clock of the machine.
type Real struct{}

// Now is time.Now.
func (Real) Now() time.Time { return time.Now() }

// AfterFunc is time.AfterFunc.
func (Real) AfterFunc(d time.Duration, f func()) (stop func()) {
	timer := time.AfterFunc(d, f)
	return func() { timer.Stop() }
}

// Of returns the clock that a transport brings, else the clock of the machine. Tests set the clock in this way because
// users of the client are to see no option for it.
func Of(transport http.RoundTripper) Clock {
	if c, ok := transport.(Clock); ok {
		return c
	}
	return Real{}
}

// A Shifted is a Clock for tests: the real time plus an offset. The zero value is ready.
type Shifted struct {
	mu     sync.Mutex // guards what follows
	offset time.Duration
	timers map[*shiftedTimer]struct{}
}

type shiftedTimer struct {
	due  time.Time
	real *time.Timer
}

// Now is the real time plus what Advance has added.
func (s *Shifted) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.offset)
}

// AfterFunc is like time.AfterFunc; Advance brings the call forward.
func (s *Shifted) AfterFunc(d time.Duration, f func()) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &shiftedTimer{due: time.Now().Add(s.offset + d)}
	t.real = time.AfterFunc(d, func() {
		s.mu.Lock()
		_, waits := s.timers[t]
		delete(s.timers, t)
		s.mu.Unlock()
		if waits {
			f()
		}
	})
	if s.timers == nil {
		s.timers = map[*shiftedTimer]struct{}{}
	}
	s.timers[t] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.timers, t)
		t.real.Stop()
	}
}

// Advance moves the time forward. Timers that have become due run.
func (s *Shifted) Advance(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offset += by
	now := time.Now().Add(s.offset)
	for t := range s.timers {
		t.real.Reset(max(t.due.Sub(now), 0))
	}
}

// A Transport brings a clock to a client, see Of.
type Transport struct {
	http.RoundTripper
	Clock
}
