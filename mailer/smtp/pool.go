package smtp

import (
	"container/list"
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// maxMails is how many mails go over one connection: some servers have a limit of their own.
const maxMails = 100

// errClosed is the error of mail that waits for a connection when the pool closes.
var errClosed = errors.New("the service is shutting down")

// A pool bounds connections, over all servers and for each, and keeps idle ones for a while. Its only goroutines say QUIT. A
// connection is in use by one mail at a time.
//
// Mail waits in one queue for each server. Where all connections of the total are taken, the next one goes to the server that
// has the fewest, and a server that has several gives up the one that falls free: a server that hangs delays its own mail only.
type pool struct {
	perServer, total int
	keep             time.Duration // idle connections
	goodbye          time.Duration // the limit of a QUIT

	mu      sync.Mutex // guards all below, and the lanes
	lanes   map[Server]*lane
	open    int        // connections, idle and being made ones included
	ending  int        // of those, the ones on which QUIT is said
	idle    *list.List // of *parked: all idle sessions, the longest idle first
	arrived int        // mails that have waited so far
	closed  bool
	quits   sync.WaitGroup
}

// A lane is what a pool has for one server.
type lane struct {
	server  Server
	open    int             // connections, idle and being made ones included
	idle    []*list.Element // of pool.idle, the latest last
	waiting []*waiter       // first come, first served
}

// A waiter is a mail that waits for a connection.
type waiter struct {
	number int           // in the order of arrival
	got    chan *session // gets a session, or nil and the right to make one; closed with the pool
}

// A parked session is idle.
type parked struct {
	*session
	lane *lane
}

func newPool(perServer, total int, keep, goodbye time.Duration) *pool {
	return &pool{perServer: perServer, total: total, keep: keep, goodbye: goodbye, lanes: map[Server]*lane{}, idle: list.New()}
}

// take returns a session to the server, or nil and the right to make one. It waits for either until ctx ends. After
// a return without an error, exactly one of give, end and drop must follow.
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
	p.arrived++
	w := &waiter{p.arrived, make(chan *session, 1)}
	l.waiting = append(l.waiting, w)
	p.settle()
	p.mu.Unlock()
	select {
	case s, ok := <-w.got:
		if !ok {
			return nil, nil, errClosed
		}
		return l, s, nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case s, ok := <-w.got: // at the same moment
		if !ok {
			return nil, nil, errClosed
		}
		return l, s, nil
	default:
	}
	l.waiting = slices.DeleteFunc(l.waiting, func(other *waiter) bool { return other == w })
	p.forget(l)
	return nil, nil, ctx.Err()
}

// next takes the waiter that has waited longest out of its queue.
func (l *lane) next() *waiter {
	w := l.waiting[0]
	l.waiting = l.waiting[1:]
	return w
}

// give puts a session back for the next mail.
func (p *pool) give(l *lane, s *session) {
	p.mu.Lock()
	if p.closed || l.open > 1 && p.needed(l) {
		p.mu.Unlock()
		p.end(l, s)
		return
	}
	defer p.mu.Unlock()
	if len(l.waiting) > 0 {
		l.next().got <- s
		return
	}
	e := p.idle.PushBack(&parked{s, l})
	l.idle = append(l.idle, e)
	expire := func() { p.expire(e) }
	if s.idle != nil {
		s.idle.Stop()
	}
	s.idle = time.AfterFunc(p.keep, expire)
	p.settle() // another server may need its place
}

// end closes a session that is in step with its server. It counts as open until QUIT is said.
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

// background says QUIT on a goroutine of its own; once the pool is closed, on the caller's.
func (p *pool) background(goodbye func()) {
	p.mu.Lock()
	closed := p.closed
	if !closed { // else close may already wait for quits
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

// drop notes that a connection is closed, or was never made.
func (p *pool) drop(l *lane) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.open--
	p.open--
	p.settle()
	p.forget(l)
}

// needed reports whether mail to other servers waits for the total alone, and waits for more connections than are ending. The
// caller holds mu.
func (p *pool) needed(l *lane) bool {
	if p.open < p.total {
		return false
	}
	n := 0
	for _, other := range p.lanes {
		if other != l && p.wants(other) {
			n++
		}
	}
	return n > p.ending
}

// wants reports whether mail waits that the server's own bound would let go. The caller holds mu.
func (p *pool) wants(l *lane) bool { return len(l.waiting) > 0 && l.open < p.perServer }

// settle gives the right to open a connection to mail that waits, as long as there is room. The caller holds mu.
func (p *pool) settle() {
	for {
		var l *lane
		for _, other := range p.lanes {
			if p.wants(other) && (l == nil || other.open < l.open || other.open == l.open && other.waiting[0].number < l.waiting[0].number) {
				l = other
			}
		}
		if l == nil || p.open >= p.total && !p.evict() {
			return
		}
		l.open++
		p.open++
		l.next().got <- nil
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

// expire ends a session that no mail has needed.
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

// forget drops an empty lane.
func (p *pool) forget(l *lane) {
	if l.open == 0 && len(l.waiting) == 0 && p.lanes[l.server] == l {
		delete(p.lanes, l.server)
	}
}

// close ends idle sessions, and those in use as they are given back; mail that waits gets errClosed. It waits for QUITs.
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
	for _, l := range p.lanes {
		for len(l.waiting) > 0 {
			close(l.next().got)
		}
		p.forget(l)
	}
	p.mu.Unlock()
	p.quits.Wait()
}
