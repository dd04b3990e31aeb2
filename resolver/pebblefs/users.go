package pebblefs

import (
	"sync/atomic"
	"time"
)

// Users counts the reads under way, because Pebble panics when it is used after Close.
type Users struct {
	n      atomic.Int64
	closed atomic.Bool
}

// Enter begins a use; false once the store is closed. Leave must follow a true one.
func (u *Users) Enter() bool {
	u.n.Add(1)
	if u.closed.Load() {
		u.n.Add(-1)
		return false
	}
	return true
}

// Leave ends a use.
func (u *Users) Leave() { u.n.Add(-1) }

// Drain refuses new users and waits for the present ones, unless the barrier may hold one of them. They are reads of
// microseconds, and scans whose yield may take long; polling keeps Enter and Leave at one atomic add each.
func (u *Users) Drain(b *Barrier) {
	u.closed.Store(true)
	for u.n.Load() != 0 && !b.tripped.Load() {
		time.Sleep(200 * time.Microsecond)
	}
}

// Refuse refuses new users, without a wait for those that are there.
func (u *Users) Refuse() { u.closed.Store(true) }

// Idle reports that nobody uses the store.
func (u *Users) Idle() bool { return u.n.Load() == 0 }
