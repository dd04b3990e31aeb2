package mailer

import (
	"container/heap"
	"context"
	"slices"
	"sync"
	"time"
)

// An outbox is the queue of one project's mail, with places for its concurrent attempts. Sends within a request go
// before queued mail. Queued mail gets a quarter of the places at most, and one while the server cannot be reached. No
// outbox blocks another.
type outbox struct {
	m       *Mailer
	project int64
	users   int  // references; guarded by Mailer.mu
	asked   bool // is in the queue of slots, which guards it

	mu      sync.Mutex      // guards what follows
	busy    int             // attempts under way
	retries int             // the part of busy that works on queued mail
	pending int             // queued mail that is being worked on, so it is in neither heap
	turns   int             // places given since the last one to queued mail
	fresh   []chan struct{} // sends that wait for a place; closed once they have it
	later   items           // queued, not due yet, by time
	ready   items           // queued and due, by expiry
	hold    *hold           // why queued mail is not tried; nil for none
	failure failure
	alarm   alarm
	looked  int64 // when run looked last, Unix milliseconds
}

// An alarm calls an outbox's run at a time.
type alarm struct {
	stop func() bool // nil: no time is set
	at   int64       // Unix milliseconds
}

// clear forgets the time.
func (a *alarm) clear() {
	if a.stop != nil {
		a.stop()
	}
	*a = alarm{}
}

// failure is the state of a server that could not be reached.
type failure struct {
	inRow int       // attempts that failed in a row
	until time.Time // queued mail is not tried before
	with  destination
}

// dueAtOnce bounds how many mails become ready in one critical section.
const dueAtOnce = 4096

// everyNth: one place in so many goes to queued mail even if sends wait for one.
const everyNth = 8

// idle reports whether the outbox holds nothing.
func (b *outbox) idle(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.busy == 0 && b.pending == 0 && b.later.Len() == 0 && b.ready.Len() == 0 && len(b.fresh) == 0 &&
		!now.Before(b.failure.until) &&
		(b.hold == nil || b.hold.config == destination{})
}

// takePlace takes a place for a send if one is free. It does not wait.
func (b *outbox) takePlace() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.busy >= b.m.options.PerServer || len(b.fresh) > 0 {
		return false
	}
	b.busy++
	return true
}

// maxFresh bounds the sends that wait for a place: further ones would hardly get one within their budget.
const maxFresh = 64

// hopeful reports whether a send may wait for a place: not if too many wait already, or if the server is known to be
// unreachable.
func (b *outbox) hopeful() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mayWait()
}

// mayWait is hopeful for a caller that holds mu.
func (b *outbox) mayWait() bool {
	return len(b.fresh) < maxFresh && !b.m.clock.Now().Before(b.failure.until)
}

// waitForPlace takes a place for a send. It returns false when ctx ends or the Mailer drains, and at once if the outbox
// is not hopeful.
func (b *outbox) waitForPlace(ctx context.Context) bool {
	called := make(chan struct{})
	b.mu.Lock()
	if !b.mayWait() {
		b.mu.Unlock()
		return false
	}
	b.fresh = append(b.fresh, called)
	b.grant()
	b.mu.Unlock()
	select {
	case <-called:
		return true
	case <-ctx.Done():
	case <-b.m.inflight.closed:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	at := slices.Index(b.fresh, called)
	if at < 0 {
		return true // the place was granted at the same moment
	}
	b.fresh = slices.Delete(b.fresh, at, at+1)
	return false
}

// grant gives free places to waiting sends. The caller holds mu.
func (b *outbox) grant() {
	for len(b.fresh) > 0 && b.busy < b.m.options.PerServer {
		if b.turns >= everyNth && b.retries == 0 && b.mayTry(b.m.clock.Now()) {
			return // run takes this place
		}
		b.turns++
		b.busy++
		close(b.fresh[0])
		b.fresh = b.fresh[1:]
	}
}

// leave releases the place of an attempt, and its slot if it was one with queued mail.
func (b *outbox) leave(p *slot) {
	b.mu.Lock()
	b.busy--
	if p != nil {
		b.retries--
	}
	b.grant()
	b.mu.Unlock()
	if p != nil {
		p.release()
	}
	b.run()
}

// add queues a mail.
func (b *outbox) add(it item) {
	b.mu.Lock()
	b.later.push(it)
	b.mu.Unlock()
	b.run()
}

// run starts the attempts that queued mail may make now, and sets the timer for the next one.
func (b *outbox) run() {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.m.clock.Now()
	if now.UnixMilli() < b.looked {
		b.setBack(now)
	}
	b.looked = now.UnixMilli()
	moved := 0
	for b.later.Len() > 0 && b.later.top().at <= now.UnixMilli() && moved < dueAtOnce {
		b.ready.push(b.later.pop())
		moved++
	}
	for b.mayTry(now) && b.m.begin() {
		p := b.m.slots.acquire(b, b.failure.inRow > 0)
		if p == nil {
			b.m.end()
			b.turns = 0 // sends need not wait for a slot
			break
		}
		it := b.ready.pop()
		b.busy++
		b.retries++
		b.pending++
		b.turns = 0
		b.m.counters.attempts.Add(1)
		go b.work(it, p)
	}
	b.grant()
	b.arm(now)
}

// setBack makes due what a clock that was ahead, and was set back, has left further in the future than any wait is. The
// caller holds mu.
func (b *outbox) setBack(now time.Time) {
	for i := range b.later.list {
		b.later.list[i].at = nearby(b.later.list[i].at, now)
	}
	heap.Init(&b.later)
	// A difference of two times goes by the monotonic clock, if they have it; the sum has both clocks of now.
	b.failure.until = now.Add(min(b.failure.until.Sub(now), maxPause))
	if b.hold != nil {
		b.hold.since = now.Add(min(b.hold.since.Sub(now), 0))
	}
}

// work makes one attempt with queued mail, in a goroutine of its own.
func (b *outbox) work(it item, p *slot) {
	defer b.m.end()
	leave := sync.OnceFunc(func() { b.leave(p) })
	b.m.retry(b, it, p, leave)
	leave()
	b.mu.Lock()
	b.pending--
	b.mu.Unlock()
	b.m.counters.attempts.Add(-1)
}

// mayTry reports whether a queued mail may start an attempt, or reach its end, now. The caller holds mu.
func (b *outbox) mayTry(now time.Time) bool {
	if b.ready.Len() == 0 || b.busy >= b.m.options.PerServer || len(b.fresh) > 0 && b.turns < everyNth {
		return false
	}
	most := max(b.m.options.PerServer/4, 1)
	if b.failure.inRow > 0 {
		most = 1
	}
	switch {
	case b.retries >= most:
		return false
	case b.ready.top().expires <= now.UnixMilli():
		return true
	case b.hold != nil:
		return b.hold.over(now)
	}
	return !now.Before(b.failure.until)
}

// arm sets the timer to the next moment at which an attempt may start, unless another event starts it. The caller holds
// mu.
func (b *outbox) arm(now time.Time) {
	if b.m.draining() {
		return
	}
	next := int64(0)
	soonest := func(at int64) {
		if at > 0 && (next == 0 || at < next) {
			next = at
		}
	}
	if b.later.Len() > 0 {
		soonest(max(b.later.top().at, now.UnixMilli()))
	}
	if b.ready.Len() > 0 {
		future := func(at int64) {
			if at > now.UnixMilli() {
				soonest(at)
			}
		}
		future(b.ready.top().expires)
		switch {
		case b.hold == nil:
			future(ceilMilli(b.failure.until))
		case b.hold.gone():
			future(ceilMilli(b.hold.since.Add(goneGrace)))
		}
	}
	if next == b.alarm.at {
		return
	}
	if b.alarm.clear(); next == 0 {
		return
	}
	b.alarm = alarm{at: next, stop: b.m.clock.AfterFunc(time.UnixMilli(next).Sub(now), func() {
		b.mu.Lock()
		if b.alarm.at == next {
			b.alarm = alarm{}
		}
		b.mu.Unlock()
		b.run()
	})}
}

// ceilMilli returns t in Unix milliseconds, rounded up so that no timer fires too early; 0 for the zero time.
func ceilMilli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Add(time.Millisecond - 1).UnixMilli()
}

// stop clears the alarm. No alarm is set once the Mailer drains.
func (b *outbox) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.alarm.clear()
}
