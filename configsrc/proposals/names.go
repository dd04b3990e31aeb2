package proposals

import (
	"context"
	"sync"
)

// names are locks by name.
type names struct {
	mu   sync.Mutex // guards what follows
	held map[string]*nameLock
}

// A nameLock is held by one call, and others may wait.
type nameLock struct {
	turn  chan struct{} // of capacity 1
	calls int           // that hold it or wait; guarded by names.mu
}

// lockName waits for a name. free gives it back.
func (n *names) lockName(ctx context.Context, name string) (free func(), err error) {
	n.mu.Lock()
	l := n.held[name]
	if l == nil {
		if n.held == nil {
			n.held = map[string]*nameLock{}
		}
		l = &nameLock{turn: make(chan struct{}, 1)}
		n.held[name] = l
	}
	l.calls++
	n.mu.Unlock()
	leave := func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if l.calls--; l.calls == 0 {
			delete(n.held, name)
		}
	}
	select {
	case l.turn <- struct{}{}:
		return func() { <-l.turn; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
