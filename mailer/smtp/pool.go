package smtp

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// maxMails is how many mails use one connection: some servers have such a limit themselves.
const maxMails = 100

// errClosed is the error of mails that wait for a connection when the pool closes.
var errClosed = errors.New("the service is shutting down")

// A pool bounds connections, in total and per server, and keeps idle ones for a while. Its only goroutines say QUIT.
// One mail at a time uses a connection.
//
// Mails wait in one queue per server. If the total is used up, the next free connection goes to the server that has the
// fewest, and a server that has several gives one up: a server that hangs delays only its own mail.
type pool struct {
	perServer, total int
	idleTime         time.Duration // how long idle connections are kept
	goodbye          time.Duration // the limit of a QUIT

	mu      sync.Mutex // guards everything below, and the queues
	queues  map[Server]*serverQueue
	open    int // connections, including idle ones and those being opened
	ending  int // the part of open that is saying QUIT
	arrived int // mails that have waited so far
	closed  bool
	quits   sync.WaitGroup
}

// A serverQueue holds the connections to one server and the mails that wait for them.
type serverQueue struct {
	server  Server
	open    int        // connections, including idle ones and those being opened
	idle    []*session // the longest idle first
	waiting []*waiter  // first come, first served
}

// A waiter is a mail that waits for a connection.
type waiter struct {
	number int           // in the order of arrival
	got    chan *session // receives a session, or nil and the right to open one; closed with the pool
}

// acquire returns a session with the server, or nil and the right to open one. It waits for either until ctx ends. After a
// return without an error the caller must call exactly one of give, end and drop.
func (p *pool) acquire(ctx context.Context, server Server) (*serverQueue, *session, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, nil, errClosed
	}
	q := p.queues[server]
	if q == nil {
		q = &serverQueue{server: server}
		p.queues[server] = q
	}
	if n := len(q.idle); n > 0 {
		s := q.idle[n-1]
		q.unpark(s)
		p.mu.Unlock()
		return q, s, nil
	}
	p.arrived++
	w := &waiter{p.arrived, make(chan *session, 1)}
	q.waiting = append(q.waiting, w)
	p.grantConnections()
	p.mu.Unlock()
	var s *session
	open := false
	select {
	case s, open = <-w.got:
	case <-ctx.Done():
		if p.withdraw(q, w) {
			return nil, nil, ctx.Err()
		}
		s, open = <-w.got // granted at the same moment
	}
	if !open {
		return nil, nil, errClosed
	}
	return q, s, nil
}

// withdraw removes a waiter from its queue. It returns false if the waiter is no longer in it, so that got has a value
// or is closed.
func (p *pool) withdraw(q *serverQueue, w *waiter) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.Index(q.waiting, w)
	if at < 0 {
		return false
	}
	q.waiting = slices.Delete(q.waiting, at, at+1)
	p.forget(q)
	return true
}

// next removes the waiter that has waited longest.
func (q *serverQueue) next() *waiter {
	w := q.waiting[0]
	q.waiting = q.waiting[1:]
	return w
}

// give returns a session for the next mail.
func (p *pool) give(q *serverQueue, s *session) {
	p.mu.Lock()
	if p.closed || q.open > 1 && p.needed(q) {
		p.mu.Unlock()
		p.end(q, s)
		return
	}
	defer p.mu.Unlock()
	if len(q.waiting) > 0 {
		q.next().got <- s
		return
	}
	q.idle = append(q.idle, s)
	s.idle, s.timer = time.Now(), time.AfterFunc(p.idleTime, func() { p.expire(q, s) })
	p.grantConnections() // another server may need the connection
}

// end closes a session that is in step with its server. It counts as open until QUIT is said.
func (p *pool) end(q *serverQueue, s *session) {
	p.mu.Lock()
	p.ending++
	p.mu.Unlock()
	p.background(func() {
		s.quit(p.goodbye)
		p.mu.Lock()
		p.ending--
		p.mu.Unlock()
		p.drop(q)
	})
}

// background says QUIT in a goroutine of its own, or in the caller's once the pool is closed.
func (p *pool) background(goodbye func()) {
	p.mu.Lock()
	closed := p.closed
	if !closed { // if closed, close may already wait for quits
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

// drop records that a connection was closed or never opened.
func (p *pool) drop(q *serverQueue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q.open--
	p.open--
	p.grantConnections()
	p.forget(q)
}

// needed reports whether mail to other servers waits only because of the total, and needs more connections than are
// ending. The caller holds mu.
func (p *pool) needed(q *serverQueue) bool {
	if p.open < p.total {
		return false
	}
	n := 0
	for _, other := range p.queues {
		if other != q && p.wants(other) {
			n++
		}
	}
	return n > p.ending
}

// wants reports whether mail waits although the server's own bound is not reached. The caller holds mu.
func (p *pool) wants(q *serverQueue) bool { return len(q.waiting) > 0 && q.open < p.perServer }

// grantConnections grants waiting mails the right to open a connection, as long as there is room. The caller holds mu.
func (p *pool) grantConnections() {
	for {
		var q *serverQueue
		for _, other := range p.queues {
			if p.wants(other) && (q == nil || other.open < q.open || other.open == q.open &&
				other.waiting[0].number < q.waiting[0].number) {
				q = other
			}
		}
		if q == nil || p.open >= p.total && !p.evict() {
			return
		}
		q.open++
		p.open++
		q.next().got <- nil
	}
}

// evict closes the longest idle session at once, and reports whether there was one.
func (p *pool) evict() bool {
	var q *serverQueue
	for _, other := range p.queues {
		if len(other.idle) > 0 && (q == nil || other.idle[0].idle.Before(q.idle[0].idle)) {
			q = other
		}
	}
	if q == nil {
		return false
	}
	s := q.idle[0]
	q.unpark(s)
	s.abandon()
	q.open--
	p.open--
	p.forget(q)
	return true
}

// expire ends a session that no mail has used in time.
func (p *pool) expire(q *serverQueue, s *session) {
	p.mu.Lock()
	idle := q.unpark(s)
	p.mu.Unlock()
	if idle {
		p.end(q, s)
	}
}

// unpark removes a session from the idle ones. It returns false if a mail has taken it.
func (q *serverQueue) unpark(s *session) bool {
	at := slices.Index(q.idle, s)
	if at < 0 {
		return false
	}
	q.idle = slices.Delete(q.idle, at, at+1)
	s.timer.Stop()
	return true
}

// forget deletes an empty queue.
func (p *pool) forget(q *serverQueue) {
	if q.open == 0 && len(q.waiting) == 0 && p.queues[q.server] == q {
		delete(p.queues, q.server)
	}
}

// close ends idle sessions now, and those in use when they are given back; waiting mails get errClosed. It waits for
// the QUITs.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	for _, q := range p.queues {
		for len(q.idle) > 0 {
			s := q.idle[0]
			q.unpark(s)
			p.quits.Go(func() {
				s.quit(p.goodbye)
				p.drop(q)
			})
		}
		for len(q.waiting) > 0 {
			close(q.next().got)
		}
		p.forget(q)
	}
	p.mu.Unlock()
	p.quits.Wait()
}
