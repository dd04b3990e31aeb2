package events

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

var (
	refuseFull = &catalog.Error{Code: catalog.CodeUnavailable,
		Message: "this node has as many event streams open as it may"}
	refuseKeyFull = &catalog.Error{Code: catalog.CodeUnavailable,
		Message: "this key has as many event streams open on this node as a key may"}
	refuseStopping = &catalog.Error{Code: catalog.CodeUnavailable, Message: "the service is shutting down"}
)

// An Ending is the reason why a stream has ended, as metrics and logs name it.
type Ending string

// The reasons.
const (
	EndClient   Ending = "client"   // the client hung up, or sent too much
	EndSlow     Ending = "slow"     // the client did not read in time
	EndKey      Ending = "key"      // the key was revoked, was replaced, has expired or may no longer read events
	EndShutdown Ending = "shutdown" // this server ends
	EndFault    Ending = "fault"    // a bug
)

// Live has the feed, and the keys as they are declared now; *resolver.Resolver implements it.
type Live interface {
	Events() *resolver.Feed
	Keys() *resolver.KeySet
}

// Options say what Streams serves. All fields are required.
type Options struct {
	Live Live
	// Logger takes a line for each stream that has ended, and the panics.
	Logger *slog.Logger
	// Limit is how many streams may be open, PerKey how many of one key.
	Limit, PerKey int
	// Heartbeat is the time between two comments.
	Heartbeat time.Duration
	// Write is the time that a client has to take what is written at once.
	Write time.Duration
}

// When the feed changes, streams wake a few at a time: a thousand goroutines that become ready at once would stand in
// the scheduler's queue before the next request.
const (
	wokenAtOnce = 16
	wakeEvery   = time.Millisecond
)

// Streams are the open event streams of a server. Safe for concurrent use.
type Streams struct {
	Options
	feed    *resolver.Feed
	stopped chan struct{} // closed by Stop
	drained chan struct{} // closed when Stop has been called and no stream is open

	mu      sync.Mutex           // guards what follows
	streams map[*stream]struct{} // the open ones
	keys    map[string]int       // number of open streams by key id
	ended   map[Ending]uint64
	waking  bool // the goroutine of wakeAll runs
}

// New makes Streams with none open.
func New(o Options) *Streams {
	return &Streams{
		Options: o, feed: o.Live.Events(),
		streams: map[*stream]struct{}{}, keys: map[string]int{}, ended: map[Ending]uint64{},
		stopped: make(chan struct{}), drained: make(chan struct{}),
	}
}

// room returns a *catalog.Error if the key must not open another stream now.
func (s *Streams) room(keyID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stopping():
		return refuseStopping
	case len(s.streams) >= s.Limit:
		return refuseFull
	case s.keys[keyID] >= s.PerKey:
		return refuseKeyFull
	}
	return nil
}

// Len is the number of open streams.
func (s *Streams) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.streams)
}

// EachEnding yields for each reason how many streams have ended for it.
func (s *Streams) EachEnding(yield func(reason string, count uint64)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, why := range []Ending{EndClient, EndSlow, EndKey, EndShutdown, EndFault} {
		yield(string(why), s.ended[why])
	}
}

// start serves a stream in a goroutine of its own, and owns its connection. A stream that starts after Stop ends at
// once.
func (s *Streams) start(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams[st] = struct{}{}
	s.keys[st.key.ID]++
	if !s.waking && !s.stopping() {
		s.waking = true
		go s.wakeAll()
	}
	go st.serve()
}

func (s *Streams) remove(st *stream, why Ending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended[why]++
	delete(s.streams, st)
	if s.keys[st.key.ID]--; s.keys[st.key.ID] == 0 {
		delete(s.keys, st.key.ID)
	}
	s.checkDrained()
}

// wakeAll wakes all streams whenever the feed has changed.
func (s *Streams) wakeAll() {
	pause := time.NewTicker(wakeEvery)
	defer pause.Stop()
	var all []*stream
	for {
		changed := s.feed.Changed()
		all = s.appendOpen(all[:0])
		for i, st := range all {
			st.wake()
			if i%wokenAtOnce == wokenAtOnce-1 {
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

func (s *Streams) appendOpen(dst []*stream) []*stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	for st := range s.streams {
		dst = append(dst, st)
	}
	return dst
}

// Stop ends all streams after they have delivered the events up to now. It does not wait for that; Wait does.
func (s *Streams) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping() {
		return
	}
	close(s.stopped)
	for st := range s.streams {
		st.hurry()
		st.wake()
	}
	s.checkDrained()
}

func (s *Streams) stopping() bool {
	select {
	case <-s.stopped:
		return true
	default:
		return false
	}
}

// checkDrained closes drained once it holds. The caller holds mu.
func (s *Streams) checkDrained() {
	if len(s.streams) > 0 || !s.stopping() {
		return
	}
	select {
	case <-s.drained:
	default:
		close(s.drained)
	}
}

// Wait waits until all streams have ended, or for the end of ctx, whose error it returns. Call Stop first.
func (s *Streams) Wait(ctx context.Context) error {
	select {
	case <-s.drained:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
