package api

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"fingerpost/resolver"
)

// When something has changed, subscribers are told a few at a time: a thousand goroutines that become ready at once would
// stand in the scheduler's queue before the next resolve.
const (
	toldAtOnce = 16
	toldEvery  = time.Millisecond
)

// subscribers are the open event streams of a server. Safe for concurrent use.
type subscribers struct {
	feed   *resolver.Feed
	limit  int
	perKey int
	ended  [endings]atomic.Uint64

	stopped chan struct{} // closed when stopping is set
	drained chan struct{} // closed when stopping is set and none is open

	mu       sync.Mutex // guards what follows
	open     map[*subscriber]struct{}
	keys     map[string]int // how many of them each key has, by id
	telling  bool           // the goroutine that tells them runs
	stopping bool
}

func newSubscribers(feed *resolver.Feed, l Limits) *subscribers {
	return &subscribers{
		feed: feed, limit: l.Streams, perKey: l.StreamsPerKey, open: make(map[*subscriber]struct{}), keys: make(map[string]int),
		stopped: make(chan struct{}), drained: make(chan struct{}),
	}
}

// room reports, as an error, that the key must not have another one.
func (s *subscribers) room(key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stopping:
		return refuseStopping
	case len(s.open) >= s.limit:
		return refuseStreams
	case s.keys[key] >= s.perKey:
		return refuseKeyStreams
	}
	return nil
}

func (s *subscribers) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// add takes a subscriber in. One that comes after stop is ended at once.
func (s *subscribers) add(u *subscriber) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[u] = struct{}{}
	s.keys[u.keyID]++
	if s.stopping {
		u.end(endShutdown)
	} else if !s.telling {
		s.telling = true
		go s.tell()
	}
}

func (s *subscribers) remove(u *subscriber) {
	s.ended[u.ending.Load()].Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, u)
	if s.keys[u.keyID]--; s.keys[u.keyID] == 0 {
		delete(s.keys, u.keyID)
	}
	if s.stopping && len(s.open) == 0 {
		s.drainedNow()
	}
}

// tell wakes all subscribers whenever something has changed.
func (s *subscribers) tell() {
	pause := time.NewTicker(toldEvery)
	defer pause.Stop()
	var all []*subscriber
	for {
		changed := s.feed.Changed()
		all = s.appendOpen(all[:0])
		for i, u := range all {
			u.kick()
			if i%toldAtOnce == toldAtOnce-1 {
				select {
				case <-pause.C:
				case <-s.stopped:
					return
				}
			}
		}
		clear(all)
		select {
		case <-changed:
		case <-s.stopped:
			return
		}
	}
}

func (s *subscribers) appendOpen(dst []*subscriber) []*subscriber {
	s.mu.Lock()
	defer s.mu.Unlock()
	for u := range s.open {
		dst = append(dst, u)
	}
	return dst
}

// stop ends all streams, after what has happened until now has been told.
func (s *subscribers) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return
	}
	s.stopping = true
	close(s.stopped)
	for u := range s.open {
		u.stop(endShutdown)
	}
	if len(s.open) == 0 {
		s.drainedNow()
	}
}

// drainedNow closes drained, once. The caller holds mu.
func (s *subscribers) drainedNow() {
	select {
	case <-s.drained:
	default:
		close(s.drained)
	}
}

// wait waits for the end of all streams, or of ctx. stop has been called.
func (s *subscribers) wait(ctx context.Context) error {
	select {
	case <-s.drained:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// eachEnding yields how many streams have ended, by reason.
func (s *subscribers) eachEnding(yield func(reason string, count uint64)) {
	for why := endNot + 1; why < endings; why++ {
		yield(endingNames[why], s.ended[why].Load())
	}
}
