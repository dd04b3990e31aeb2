package share

import (
	"context"
	"sync"
	"time"
)

// Turns is a limiter of a rate that gives its turns in rounds by tenant. There is no burst: between two turns lies at
// least the interval. It is safe for concurrent use.
type Turns struct {
	every time.Duration

	mu    sync.Mutex // guards what follows
	next  time.Time  // no turn begins before it
	armed bool       // a timer will call turn
	queue rounds
}

// NewTurns returns so many turns a second, at least one.
func NewTurns(perSecond int) *Turns {
	return &Turns{every: time.Second / time.Duration(max(perSecond, 1))}
}

// Wait waits for a turn. The error is that of the context.
func (t *Turns) Wait(ctx context.Context, tenant string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t.mu.Lock()
	now := time.Now()
	if len(t.queue.order) == 0 && !now.Before(t.next) {
		defer t.mu.Unlock()
		t.next = now.Add(t.every)
		return nil
	}
	c := t.queue.add(tenant)
	t.arm(t.next.Sub(now))
	t.mu.Unlock()
	select {
	case <-c.served:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queue.remove(c) // a turn that came at the same moment is lost
	return ctx.Err()
}

// arm has turn called after d, if nothing calls it already. The caller holds mu.
func (t *Turns) arm(d time.Duration) {
	if !t.armed {
		t.armed = true
		time.AfterFunc(d, t.turn)
	}
}

// turn gives the next turn. It is called while a tenant waits, and once more if the last one has left.
func (t *Turns) turn() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.armed = false
	c := t.queue.serve(func(string) bool { return true })
	if c == nil {
		return
	}
	close(c.served)
	t.next = time.Now().Add(t.every)
	if len(t.queue.order) > 0 {
		t.arm(t.every)
	}
}
