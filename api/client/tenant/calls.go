package tenant

import (
	"fmt"
	"sync"
)

// maxCalls bounds the calls that wait for a function of the user that is slow; what comes on top is left out.
const maxCalls = 10_000

// A call is one of a function of the user: Observe with an event, or any other.
type call struct {
	event Event
	f     func() // nil: Observe
}

// calls run the functions of the user in a goroutine of their own, in order: they may use the cache, panic, or take
// their time.
type calls struct {
	observe func(Event)
	failed  func(cause any) // a function has panicked

	wake chan struct{} // holds one value when there is something to run

	mu      sync.Mutex // guards what follows
	waiting []call
}

// add has a call run later.
func (s *calls) add(one call) {
	s.mu.Lock()
	if len(s.waiting) < maxCalls {
		s.waiting = append(s.waiting, one)
	}
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run runs calls until ended is closed and none waits.
func (s *calls) run(ended <-chan struct{}) {
	var spare []call
	for {
		s.mu.Lock()
		now := s.waiting
		s.waiting = spare[:0]
		s.mu.Unlock()
		for i := range now {
			s.one(&now[i])
		}
		clear(now)
		spare = now
		if len(now) > 0 {
			continue
		}
		select {
		case <-s.wake:
		case <-ended:
			select {
			case <-s.wake:
			default:
				return
			}
		}
	}
}

func (s *calls) one(c *call) {
	defer func() {
		if cause := recover(); cause != nil {
			s.failed(cause)
		}
	}()
	if c.f == nil {
		s.observe(c.event)
		return
	}
	c.f()
}

// log writes a line of the log.
func (c *Cache) log(write func(msg string, args ...any), msg string, args ...any) {
	c.calls.add(call{f: func() { write("fingerpost: "+msg, args...) }})
}

// panicked logs that a function of the user has panicked. The logger may be that function.
func (c *Cache) panicked(cause any) {
	defer func() { _ = recover() }()
	c.o.Logger.Error("fingerpost: a function given to Open has panicked", "cause", fmt.Sprint(cause))
}
