package pebblefs

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// A Barrier is the write barrier between Pebble and the disk. Pebble answers a failed write by ending the process
// (Logger.Fatalf), or by retrying at once and for ever. Neither may happen to a service that can answer without the
// disk. So the first failure trips the barrier: the failed operation, and every later one that would change the
// directory, park their goroutines for good before they return to Pebble. Pebble then waits silently. Its reads need
// neither those goroutines nor their locks and continue.
//
// A tripped instance never touches the directory again. That makes it safe to open the directory a second time in the
// same process, once Quiet reports that no operation is in the kernel.
type Barrier struct {
	failed  chan struct{} // closed by Trip
	tripped atomic.Bool
	pending atomic.Int64 // operations between enter and leave

	mu  sync.Mutex // guards err
	err error
}

// newBarrier returns an untripped barrier.
func newBarrier() *Barrier { return &Barrier{failed: make(chan struct{})} }

// park never returns. Its caller holds no lock that a read needs: makeRoomForWrite, UpdateVersionLocked and flush1 in
// Pebble do their I/O outside DB.mu.
func park() { select {} }

// enter is called before an operation that changes the directory; leave must follow.
func (b *Barrier) enter() {
	b.pending.Add(1)
	// Checked after the operation was counted: either Quiet sees the count, or this sees the trip.
	if b.tripped.Load() {
		b.pending.Add(-1)
		park()
	}
}

// leave finishes an operation. It does not return when err is a failure.
func (b *Barrier) leave(op, name string, err error) {
	if err == nil {
		b.pending.Add(-1)
		return
	}
	b.Trip(fmt.Errorf("%w: %s %s: %w", ErrUnavailable, op, name, RootCause(err)))
	b.pending.Add(-1)
	park()
}

// Trip records the first failure. Later ones are dropped: they are its consequences.
func (b *Barrier) Trip(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
		b.tripped.Store(true)
		close(b.failed)
	}
}

// Failed is closed when the barrier trips; Err then returns the reason.
func (b *Barrier) Failed() <-chan struct{} { return b.failed }

// Err returns the error that tripped the barrier, or nil.
func (b *Barrier) Err() error {
	if !b.tripped.Load() {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// Quiet reports whether the barrier has tripped and no operation is running: nothing of this instance will ever reach
// the directory again.
func (b *Barrier) Quiet() bool { return b.tripped.Load() && b.pending.Load() == 0 }
