package testrig

import (
	"net/http"
	"sync"
	"time"
)

// A Clock is the real time plus an offset that tests move. It is the clock of the tenant client whose transport it is
// part of, see ClockTransport. The zero value is ready. It is safe for concurrent use.
type Clock struct {
	mu     sync.Mutex // guards what follows
	offset time.Duration
	timers map[*clockTimer]struct{}
}

type clockTimer struct {
	due  time.Time
	real *time.Timer
}

// Now is the real time plus what Advance has added.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.offset)
}

// AfterFunc is like time.AfterFunc; Advance brings the call forward.
func (c *Clock) AfterFunc(d time.Duration, f func()) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &clockTimer{due: time.Now().Add(c.offset + d)}
	t.real = time.AfterFunc(d, func() {
		c.mu.Lock()
		_, waits := c.timers[t]
		delete(c.timers, t)
		c.mu.Unlock()
		if waits {
			f()
		}
	})
	if c.timers == nil {
		c.timers = map[*clockTimer]struct{}{}
	}
	c.timers[t] = struct{}{}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.timers, t)
		t.real.Stop()
	}
}

// Advance moves the time forward. Timers that have become due run.
func (c *Clock) Advance(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += by
	now := time.Now().Add(c.offset)
	for t := range c.timers {
		t.real.Reset(max(t.due.Sub(now), 0))
	}
}

// A ClockTransport brings a Clock to a tenant client, which has no option for it.
type ClockTransport struct {
	http.RoundTripper
	*Clock
}
