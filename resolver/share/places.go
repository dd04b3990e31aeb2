package share

import (
	"context"
	"sync"
)

// Places is a semaphore with a share for each tenant. It is safe for concurrent use.
type Places struct {
	most, quarter int

	mu    sync.Mutex // guards what follows
	taken int
	held  map[string]int // by tenant, none with 0
	queue rounds
}

// New returns so many places, at least one.
func New(places int) *Places {
	places = max(places, 1)
	return &Places{most: places, quarter: max(places/4, 1), held: map[string]int{}}
}

// Take waits for a place. The caller calls release once the place is free again; more calls do nothing. The error is
// that of the context.
func (p *Places) Take(ctx context.Context, tenant string) (release func(), err error) {
	p.mu.Lock()
	if p.may(tenant, p.queue.others(tenant)) {
		defer p.mu.Unlock()
		return p.give(tenant), nil
	}
	c := p.queue.add(tenant)
	p.mu.Unlock()
	select {
	case <-c.served:
		return p.releaser(tenant), nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.queue.remove(c) { // it was served meanwhile
		p.giveBack(tenant)
	}
	p.serve() // a tenant may be the only one that waits, now
	return nil, ctx.Err()
}

// TryTake takes a place that the tenant may have now; ok is false if there is none.
func (p *Places) TryTake(tenant string) (release func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.may(tenant, p.queue.others(tenant)) {
		return nil, false
	}
	return p.give(tenant), true
}

// TryTakeQuarter is TryTake for a caller with a queue of its own, in which other tenants wait: it takes no place beyond
// the tenant's quarter.
func (p *Places) TryTakeQuarter(tenant string) (release func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.may(tenant, true) {
		return nil, false
	}
	return p.give(tenant), true
}

// Waiting lists the tenants that wait, the next one first.
func (p *Places) Waiting() []Waiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.waiting()
}

// Taken returns how many places are taken.
func (p *Places) Taken() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}

// may reports whether a tenant may have one more place; crowded: others wait. It is false for each tenant that waits,
// whenever mu is free: so a newcomer for whom it is true overtakes nobody who could go on.
func (p *Places) may(tenant string, crowded bool) bool {
	free := p.most - p.taken
	if p.held[tenant] < p.quarter {
		return free > 0
	}
	return !crowded && free > p.quarter
}

// give takes a place for a tenant. The caller holds mu.
func (p *Places) give(tenant string) (release func()) {
	p.taken++
	p.held[tenant]++
	return p.releaser(tenant)
}

func (p *Places) releaser(tenant string) func() {
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.giveBack(tenant)
		p.serve()
	})
}

// giveBack frees a place of a tenant. The caller holds mu.
func (p *Places) giveBack(tenant string) {
	p.taken--
	if p.held[tenant]--; p.held[tenant] == 0 {
		delete(p.held, tenant)
	}
}

// serve gives places to all that may have one. The caller holds mu.
func (p *Places) serve() {
	may := func(tenant string) bool { return p.may(tenant, p.queue.others(tenant)) }
	for p.taken < p.most {
		c := p.queue.serve(may)
		if c == nil {
			return
		}
		p.taken++
		p.held[c.tenant]++
		close(c.served)
	}
}
