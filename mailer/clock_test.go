package mailer_test

import (
	"slices"
	"sync"
	"time"
)

// noon is the start time of the tests' clocks.
var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// A testClock stands still until a test moves it.
type testClock struct {
	mu     sync.Mutex
	now    time.Time
	timers []*testTimer
}

type testTimer struct {
	at   time.Time
	call func()
}

func newClock() *testClock { return &testClock{now: noon} }

func (c *testClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *testClock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &testTimer{c.now.Add(d), f}
	if d <= 0 {
		go f()
		return func() bool { return false }
	}
	c.timers = append(c.timers, t)
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		i := slices.Index(c.timers, t)
		if i >= 0 {
			c.timers = slices.Delete(c.timers, i, i+1)
		}
		return i >= 0
	}
}

// forward moves the clock, and runs each timer at its own time on the way.
func (c *testClock) forward(d time.Duration) {
	c.mu.Lock()
	end := c.now.Add(d)
	for {
		var first *testTimer
		for _, t := range c.timers {
			if !t.at.After(end) && (first == nil || t.at.Before(first.at)) {
				first = t
			}
		}
		if first == nil {
			break
		}
		c.timers = slices.DeleteFunc(c.timers, func(t *testTimer) bool { return t == first })
		c.now = first.at
		c.mu.Unlock()
		done := make(chan struct{})
		go func() { defer close(done); first.call() }()
		<-done
		c.mu.Lock()
	}
	c.now = end
	c.mu.Unlock()
}

// setBack sets the clock back; timers go by another one.
func (c *testClock) setBack(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(-d)
	for _, t := range c.timers {
		t.at = t.at.Add(-d)
	}
}

// armed returns the number of waiting timers.
func (c *testClock) armed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.timers)
}
