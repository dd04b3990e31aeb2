package tenant

import (
	"context"
	"fmt"
	"time"

	"fingerpost/resolver/catalog"
)

// A question is on the wire. All lookups of its host wait for it.
type question struct {
	host  string
	prior *Tenant // what is to be confirmed; nil: nothing
	era   uint64  // guarded by mu
	// rounds is Cache.rounds when it was sent.
	rounds uint64
	void   bool // an event has named the host meanwhile; guarded by mu

	done   chan struct{} // closed when the fields below are set
	tenant *Tenant
	err    error
}

// pose registers a question that the caller will send. It needs mu.
func (c *Cache) pose(host string, e *entry) *question {
	q := &question{host: host, era: c.valid.Load().era, rounds: c.rounds, done: make(chan struct{})}
	if e != nil && !e.aside {
		q.prior = e.tenant
	}
	c.asking[host] = q
	return q
}

// ask sends a question. It needs mu and the consent of mayAsk.
func (c *Cache) ask(host string, e *entry) *question {
	q := c.pose(host, e)
	c.questions++
	c.begin(func() {
		ctx, stop := c.within(askLimit)
		defer stop()
		r, f := c.resolve(ctx, q)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.questions--
		if f != nil {
			c.failed(f, q.rounds)
		} else {
			c.succeeded()
		}
		c.settle(q, r, f)
	})
	return q
}

// settle ends a question with what the server has said. It needs mu.
func (c *Cache) settle(q *question, r *reply, f *failure) {
	defer close(q.done)
	delete(c.asking, q.host)
	if f != nil {
		q.err = asError(f.cause)
		return
	}
	now := c.clock.Now()
	switch {
	case r.refusal != nil:
		q.err = fmt.Errorf("%s: %w", q.host, r.refusal)
	case r.unchanged:
		confirmed := *q.prior
		q.tenant = &confirmed
	default:
		q.tenant = r.tenant
	}
	if q.tenant != nil {
		q.tenant.AsOf = now
	}
	if q.void {
		return
	}
	e := &entry{host: q.host, tenant: q.tenant, err: q.err, asOf: now}
	e.era.Store(q.era)
	c.entries.put(e)
	c.dirty()
}

// succeeded needs mu.
func (c *Cache) succeeded() {
	c.away = away{}
	c.feed.contact = c.clock.Now()
}

// within returns a context that ends after a time of the cache's clock, and with the cache.
func (c *Cache) within(d time.Duration) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(c.ctx)
	end := c.clock.AfterFunc(d, func() { cancel(fmt.Errorf("no answer within %v", d)) })
	return ctx, func() { end(); cancel(nil) }
}

// A seenPosition is the state of the files that the newest event belongs to.
type seenPosition struct {
	at      catalog.Position // without an epoch: none
	reached bool             // an answer was as new
}

// see notes the id of an event. It needs mu.
func (c *Cache) see(id string) {
	at, err := catalog.ParsePosition(id)
	if err != nil || at.Epoch == c.seen.at.Epoch && at.Generation <= c.seen.at.Generation {
		return
	}
	c.seen = seenPosition{at: at}
}

// begun prepares a question for being sent, perhaps again. It returns the position that the answer must have reached,
// "" for none.
func (c *Cache) begun(qs []*question) (minPosition string, at catalog.Position) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, q := range qs {
		q.era = c.valid.Load().era
	}
	if c.seen.at.Epoch == "" || c.seen.reached {
		return "", c.seen.at
	}
	return c.seen.at.String(), c.seen.at
}

// arrived compares the position of an answer with the one that was known when the question was sent, and reports
// whether the answer is as new. Where nodes differ, the next question asks for the position.
func (c *Cache) arrived(position string, at catalog.Position) bool {
	got, err := catalog.ParsePosition(position)
	if at.Epoch == "" || err != nil {
		return true
	}
	newer := got.Epoch == at.Epoch && got.Generation >= at.Generation
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen.at == at {
		c.seen.reached = newer
	}
	return newer
}

// forgetPosition follows an answer that does not know the position: the files were restored, or the node is another's.
func (c *Cache) forgetPosition() {
	c.mu.Lock()
	c.seen = seenPosition{}
	c.changed(c.mark())
}
