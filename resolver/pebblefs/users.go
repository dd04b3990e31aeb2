package pebblefs

import (
	"sync/atomic"
	"time"
)

// users counts the reads under way, because Pebble panics when it is used after Close.
type users struct {
	n      atomic.Int64
	closed atomic.Bool
}

// enter begins a use; false once the store is closed. leave must follow a true one.
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

// drain refuses new users and waits for the present ones, unless the barrier may hold one of them. They are reads of
// microseconds, and scans whose yield may take long; polling keeps enter and leave at one atomic add each.
func (u *users) drain(b *Barrier) {
	u.closed.Store(true)
	for u.n.Load() != 0 && !b.tripped.Load() {
		time.Sleep(200 * time.Microsecond)
	}
}

// refuse refuses new users, without a wait for those that are there.
func (u *users) refuse() { u.closed.Store(true) }

// idle reports that nobody uses the store.
func (u *users) idle() bool { return u.n.Load() == 0 }
