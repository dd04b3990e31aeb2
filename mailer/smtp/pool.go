package smtp

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"
)

// maxMails is how many mails go over one connection: some servers have a limit of their own.
const maxMails = 100

// errClosed is what waits for a connection gets when the pool closes.
var errClosed = errors.New("the service is shutting down")

// A pool bounds connections, over all servers and for each, and keeps idle ones for a while. It has no goroutine but for
// goodbyes. A connection is in use by one mail at a time.
//
// Who has to wait for the total does so in turns, server by server, and a server that has several connections gives the
// one that falls free to those: a server that hangs can keep its own mail waiting only.
type pool struct {
	perServer, total int
	keep             time.Duration // idle connections
	goodbye          time.Duration // the most that a QUIT may take

	mu      sync.Mutex // guards all below, and the lanes
	lanes   map[Server]*lane
	open    int        // connections, idle and being made ones included
	ending  int        // of those, the ones that a goodbye is being said on
	idle    *list.List // of *parked: all idle ones, the longest idle first
	starved []*lane    // waiting for the total only, in turn; each once
	closed  bool
	quits   sync.WaitGroup
}

// A lane is what a pool has for one server.
type lane struct {
	server  Server
	open    int             // connections, idle and being made ones included
	idle    []*list.Element // of pool.idle, the latest last
	waiting list.List       // of chan *session, first come, first served
	starved bool            // is in pool.starved
}

// A parked session is idle.
type parked struct {
	*session
	lane *lane
}

func newPool(perServer, total int, keep, goodbye time.Duration) *pool {
	return &pool{perServer: perServer, total: total, keep: keep, goodbye: goodbye, lanes: map[Server]*lane{}, idle: list.New()}
}

// take returns a session to the server, or nil and the right to make one. It waits for either while ctx lets it. After it
// returned without an error, exactly one of give, end and drop must follow.
func (p *pool) take(ctx context.Context, server Server) (*lane, *session, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, nil, errClosed
	}
	l := p.lanes[server]
	if l == nil {
		l = &lane{server: server}
		p.lanes[server] = l
	}
	if n := len(l.idle); n > 0 {
		s := p.unpark(l.idle[n-1])
		p.mu.Unlock()
		return l, s, nil
	}
	got := make(chan *session, 1)
	here := l.waiting.PushBack(got)
	p.settle(l)
	p.mu.Unlock()
	select {
	case s, ok := <-got:
		if !ok {
			return nil, nil, errClosed
		}
		return l, s, nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	select {
	case s, ok := <-got: // at the same moment
		p.mu.Unlock()
		if !ok {
			return nil, nil, errClosed
		}
		return l, s, nil
	default:
	}
	l.waiting.Remove(here)
	p.forget(l)
	p.mu.Unlock()
	return nil, nil, ctx.Err()
}

// give puts a session back for the next mail.
func (p *pool) give(l *lane, s *session) {
	p.mu.Lock()
	others := len(p.starved) - p.ending
	if l.starved {
		others--
	}
	if p.closed || others > 0 && l.open > 1 {
		p.mu.Unlock()
		p.end(l, s)
		return
	}
	defer p.mu.Unlock()
	if first := l.waiting.Front(); first != nil {
		l.waiting.Remove(first).(chan *session) <- s
		return
	}
	e := p.idle.PushBack(&parked{s, l})
	l.idle = append(l.idle, e)
	expire := func() { p.expire(e) }
	if s.idle != nil {
		s.idle.Stop()
	}
	s.idle = time.AfterFunc(p.keep, expire)
	p.settle(nil) // somebody else may need its place
}

// end closes a session that is in step with its server. It counts as open until the goodbye is said.
func (p *pool) end(l *lane, s *session) {
	p.mu.Lock()
	p.ending++
	p.mu.Unlock()
	p.background(func() {
		s.quit(p.goodbye)
		p.mu.Lock()
		p.ending--
		p.mu.Unlock()
		p.drop(l)
	})
}

// background lets a goodbye take its time. Once the pool is closed, that is the caller's.
func (p *pool) background(goodbye func()) {
	p.mu.Lock()
	closed := p.closed
	if !closed { // else close may wait for quits already
		p.quits.Add(1)
	}
	p.mu.Unlock()
	if closed {
		goodbye()
		return
	}
	go func() {
		defer p.quits.Done()
		goodbye()
	}()
}

// drop tells that a connection is closed, or was never made.
func (p *pool) drop(l *lane) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.open--
	p.open--
	p.settle(l)
	p.forget(l)
}

// settle hands out what may be opened. Changed is the lane that may have come to wait for the total only; nil for none.
// It must be called with mu held.
func (p *pool) settle(changed *lane) {
	if changed != nil {
		p.starve(changed)
	}
	for len(p.starved) > 0 {
		l := p.starved[0]
		first := l.waiting.Front() // nil where all were served otherwise, or gave up
		if first != nil && p.open >= p.total && !p.evict() {
			return
		}
		p.starved = p.starved[1:]
		l.starved = false
		if first == nil {
			p.forget(l)
			continue
		}
		l.open++
		p.open++
		l.waiting.Remove(first).(chan *session) <- nil
		p.starve(l)
	}
}

// starve queues a lane for the total, if that is all it waits for.
func (p *pool) starve(l *lane) {
	if !p.closed && !l.starved && l.waiting.Len() > 0 && l.open < p.perServer {
		l.starved = true
		p.starved = append(p.starved, l)
	}
}

// evict closes the session that has been idle the longest, at once, and reports whether there was one.
func (p *pool) evict() bool {
	e := p.idle.Front()
	if e == nil {
		return false
	}
	l := e.Value.(*parked).lane
	p.unpark(e).abandon()
	l.open--
	p.open--
	p.forget(l)
	return true
}

// expire ends a session that nobody has needed.
func (p *pool) expire(e *list.Element) {
	p.mu.Lock()
	it := e.Value.(*parked)
	for _, other := range it.lane.idle {
		if other == e {
			s := p.unpark(e)
			p.mu.Unlock()
			p.end(it.lane, s)
			return
		}
	}
	p.mu.Unlock() // taken meanwhile
}

// unpark takes a session out of the idle ones.
func (p *pool) unpark(e *list.Element) *session {
	it := p.idle.Remove(e).(*parked)
	it.session.idle.Stop()
	for i, other := range it.lane.idle {
		if other == e {
			it.lane.idle = append(it.lane.idle[:i], it.lane.idle[i+1:]...)
			break
		}
	}
	return it.session
}

// forget drops a lane that nothing is left of.
func (p *pool) forget(l *lane) {
	if l.open == 0 && l.waiting.Len() == 0 && !l.starved && p.lanes[l.server] == l {
		delete(p.lanes, l.server)
	}
}

// close ends idle sessions, and those in use as they are given back; who waits gets errClosed. It waits for goodbyes.
func (p *pool) close() {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		p.quits.Wait()
		return
	}
	for e := p.idle.Front(); e != nil; e = p.idle.Front() {
		it := e.Value.(*parked)
		s := p.unpark(e)
		p.quits.Go(func() {
			s.quit(p.goodbye)
			p.drop(it.lane)
		})
	}
	p.closed = true
	p.starved = nil
	for _, l := range p.lanes {
		l.starved = false
		for first := l.waiting.Front(); first != nil; first = l.waiting.Front() {
			close(l.waiting.Remove(first).(chan *session))
		}
		p.forget(l)
	}
	p.mu.Unlock()
	p.quits.Wait()
}
