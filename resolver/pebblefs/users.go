package pebblefs

import (
	"sync/atomic"
	"time"
)

// users counts running reads, because Pebble panics when it is used after Close.
type users struct {
	n      atomic.Int64
	closed atomic.Bool
}

// enter begins a use; false once the store is closed. leave must follow if it returned true.
func (u *users) enter() bool {
	u.n.Add(1)
	if u.closed.Load() {
		u.n.Add(-1)
		return false
	}
	return true
}

// leave ends a use.
func (u *users) leave() { u.n.Add(-1) }

// drain refuses new users and waits for the present ones, unless the barrier may hold one of them. Reads take
// microseconds, scans with a slow yield longer; polling keeps enter and leave at one atomic add each.
func (u *users) drain(b *Barrier) {
	u.closed.Store(true)
	for u.n.Load() != 0 && !b.tripped.Load() {
		time.Sleep(200 * time.Microsecond)
	}
}

// refuse refuses new users without waiting for the present ones.
func (u *users) refuse() { u.closed.Store(true) }

// idle reports whether the store has no user.
func (u *users) idle() bool { return u.n.Load() == 0 }
