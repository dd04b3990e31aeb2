package store

import (
	"sync/atomic"
	"time"
)

// users counts the reads under way, because Pebble panics when it is used after Close.
type users struct {
	n      atomic.Int64
	closed atomic.Bool
}

func (u *users) enter() bool {
	u.n.Add(1)
	if u.closed.Load() {
		u.n.Add(-1)
		return false
	}
	return true
}

func (u *users) leave() { u.n.Add(-1) }

// drain refuses new users and waits for the present ones, unless the fence may hold one of them. They are reads of
// microseconds, and scans whose yield may take long; polling keeps enter and leave at one atomic add each.
func (u *users) drain(f *fence) {
	u.closed.Store(true)
	for u.n.Load() != 0 && !f.tripped.Load() {
		time.Sleep(200 * time.Microsecond)
	}
}
